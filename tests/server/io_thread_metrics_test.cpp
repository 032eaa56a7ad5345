#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/server/io_thread.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/server/fixtures/io_threads_fixture.hpp"
#include "tests/server/fixtures/worker_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::server {
namespace {

using support::bytes_of;
using support::eventually;

// A worker that refuses all looks busy, not well.
TEST(IoThreadMetrics, WhatTheWorkerRefusesIsNoResponse) {
  const auto channel = test::make_channel(1, channel::Wakeup::polling);
  test::Worker worker(channel->memory);
  const auto metrics = std::make_shared<ThreadMetrics>();
  IoThread::Config config{
      0, -1, {1000, kernels::response_length_of("reverse")}, core::seconds(60), {}, {}, {}, [] {}};
  config.metrics = metrics;
  IoThread thread(config, channel);
  thread.start();
  thread.select_worker(1);
  auto [client, server] = test::connected_sockets();
  thread.take(std::move(server));
  test::Received received;
  const auto answered = [&, &own = client] {
    return eventually([&] { return received.read(own), received.take().has_value(); });
  };
  test::send_request(client, bytes_of("refused"));
  ASSERT_TRUE(eventually([&] { return worker.has_request(); }));
  worker.fail();
  ASSERT_TRUE(answered());
  test::send_request(client, bytes_of("answered"));
  ASSERT_TRUE(eventually([&] { return worker.serve(); }));
  ASSERT_TRUE(answered());
  thread.stop();
  EXPECT_EQ(metrics->requests.value(), 2U);
  EXPECT_EQ(metrics->responses.value(), 1U);
}

using IoThreadFigures = test::IoThreadsFixture;

TEST_F(IoThreadFigures, AreThoseOfTheLastTurn) {
  open();
  EXPECT_EQ(metrics_->slots.value(), 128U) << "32 short requests in each of 4 slots";
  Client& one = connect(1);
  Client& other = connect(2);
  EXPECT_EQ(metrics_->connections.value(), 2U);
  EXPECT_EQ(metrics_->accepted.value(), 2U);
  ask(one, "1");
  ask(other, "2");
  EXPECT_EQ(metrics_->requests.value(), 2U);
  EXPECT_EQ(metrics_->in_flight.value(), 2U);
  EXPECT_TRUE(worker().serve());
  turn();
  EXPECT_EQ(metrics_->in_flight.value(), 1U);
  EXPECT_EQ(metrics_->responses.value(), 1U);
  EXPECT_TRUE(worker().serve());
  turn();
  one.socket.reset();
  turn();
  EXPECT_EQ(metrics_->connections.value(), 1U);
  EXPECT_EQ(threads_[0]->client_count(), 1U);
  EXPECT_EQ(metrics_->in_flight.value(), 0U);
}

TEST_F(IoThreadFigures, ATurnSaysWhetherItHadWork) {
  open();
  Client& client = connect();
  IoThread& thread = *threads_[0];
  const auto works_until_idle = [&] {
    bool worked = false;
    for (int i = 0; i < 20; ++i) worked = thread.turn({}) || worked;
    return worked && !thread.turn({});
  };
  EXPECT_FALSE(works_until_idle()) << "there is nothing to do";
  test::send_request(client.socket, bytes_of("request"));
  EXPECT_TRUE(works_until_idle()) << "it reads";
  EXPECT_TRUE(worker().serve());
  EXPECT_TRUE(works_until_idle()) << "it answers";
  client.socket.reset();
  EXPECT_TRUE(works_until_idle()) << "it ends the client";
  thread.set_expired(true);
  EXPECT_TRUE(works_until_idle()) << "it takes an order";
}

// The engine finds a turn too long when the next one begins: then the work is that before it.
TEST_F(IoThreadFigures, ALongTurnIsReportedOnceWithItsWork) {
  open();
  Client& client = connect();
  ask(client, "before");
  test::send_request(client.socket, bytes_of("request"));
  for (int i = 0; i < 20 && metrics_->requests.value() == 1; ++i) threads_[0]->turn({});
  metrics_->times.last_stall.set(7'500'000);
  metrics_->times.stalls.set(1);
  threads_[0]->turn({});
  const std::string text =
      "I/O thread 0: a turn took 7.5 ms, with 1 requests, 0 answers, 19 bytes from clients, 0 "
      "bytes to clients, 0 clients gone";
  EXPECT_TRUE(log_.has("warning: " + text + " (0 more were not logged)\n")) << log_.text();
  turn();
  const auto events = events_->to_json();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["text"], text);
}

TEST(IoThreadHandshakes, HaveAQuarterOfItsShareOfTheMemory) {
  const auto metrics = std::make_shared<ThreadMetrics>();
  IoThread::Config config{
      0, -1, {1000, kernels::response_length_of("reverse")}, core::seconds(60), {}, {}, {}, [] {}};
  config.metrics = metrics;
  constexpr std::size_t kMost = 8;
  config.client_memory = std::make_shared<ClientMemory>(2 * 4 * kMost * Handshakes::kMemory, 1);
  IoThread thread(config, test::make_channel(1, channel::Wakeup::polling));
  thread.open();
  thread.set_tls(net::TlsContext::psk_server({{"key", support::random_bytes(32, 1)}}));
  std::vector<core::Fd> clients;
  for (std::size_t i = 1; i <= kMost + 4; ++i) {
    auto [client, server] = test::connected_sockets();
    clients.push_back(std::move(client));
    thread.take(std::move(server));
    for (int turns = 0; turns < 5; ++turns) thread.turn({});
    EXPECT_EQ(metrics->connections.value(), std::min(i, kMost));
  }
}

using IoThreadsOfAFullChannel = test::IoThreadsFixture;

TEST_F(IoThreadsOfAFullChannel, EachTurnCountsTheTimeSinceTheLastOne) {
  open();
  Client& client = connect();
  const auto began = core::Clock::now();
  for (std::uint32_t i = 0; i < 40; ++i) {
    test::send_request(client.socket, support::random_bytes(1000, i));
  }
  for (int turns = 0; turns < 100; ++turns) turn();
  const core::Duration counted(metrics_->channel_full.value());
  EXPECT_GT(counted, core::Duration{});
  EXPECT_LE(counted, core::Clock::now() - began);
}

}  // namespace
}  // namespace offload::server
