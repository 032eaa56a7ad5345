#include <gtest/gtest.h>

#include <memory>

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
