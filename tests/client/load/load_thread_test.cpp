#include "apps/client/load/load_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"

namespace offload::client {
namespace {

/// A load thread with several connections, whose servers are peers[i].
class SeveralConnections : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 5;

  void start(const LoadPlan& plan) {
    std::vector<net::Stream> streams;
    for (std::size_t i = 0; i < kCount; ++i) {
      auto [own, other] = RunningLoad::make_sockets();
      streams.emplace_back(std::move(own));
      servers_.emplace_back(std::move(other));
    }
    load_ = std::make_unique<LoadThread>(7, 35, std::move(streams), plan,
                                         LoadRunContext{pool_, target_, control_, nullptr, 0});
    thread_ = std::thread([this] { load_->run(core::Clock::now()); });
  }
  const Seen& finish() {
    thread_.join();
    seen_ = seen_by(*load_);
    return *seen_;
  }
  void answer(FakeServer& server) { server.respond(reversed(server.read_request())); }

  const RequestPool pool_ = random_pool(40, Service::reverse);
  RunControl control_;
  const Target target_{};
  std::vector<FakeServer> servers_;
  std::unique_ptr<LoadThread> load_;
  std::unique_ptr<Seen> seen_;
  std::thread thread_;
};

TEST_F(SeveralConnections, AllAreServedAndCountedTogether) {
  start(plan_of(20, 3));
  for (int i = 0; i < 20; ++i) {
    for (FakeServer& server : servers_) answer(server);
  }
  const auto& result = finish();
  EXPECT_EQ(result.fault, "");
  EXPECT_EQ(result.total.sent, 20 * kCount);
  EXPECT_EQ(result.total.valid, 20 * kCount);
  EXPECT_EQ(result.total.service.count(), 20 * kCount);
  EXPECT_GT(load_->busy(), 0);
}

TEST_F(SeveralConnections, OneThatIsThroughMayBeClosedBeforeTheOthers) {
  start(plan_of(3, 1));
  for (FakeServer& server : servers_) {
    for (int i = 0; i < 3; ++i) answer(server);
    EXPECT_FALSE(server.read_more(1ms));
    server.close();
  }
  EXPECT_EQ(finish().fault, "");
}

TEST_F(SeveralConnections, AFaultOfOneNamesItAndEndsTheThread) {
  start(plan_of(10, 1));
  answer(servers_[3]);
  EXPECT_GT(servers_[3].read_request().size(), 0U);
  servers_[3].close();
  const auto& result = finish();
  EXPECT_EQ(result.fault.rfind("thread 7, connection 3, request 1: the server closed", 0), 0U)
      << result.fault;
}

TEST_F(SeveralConnections, TheSilenceOfOneIsAnErrorThoughOthersAreAnswered) {
  auto plan = plan_of(1'000'000'000, 1);
  plan.response_timeout = 500ms;
  start(plan);
  for (FakeServer& server : servers_) {
    if (&server != &servers_[2]) answer(server);
  }
  std::atomic<bool> ended{false};
  std::thread others([&] {
    while (!ended) {
      for (FakeServer& server : servers_) {
        if (&server != &servers_[2] && server.read_more(1ms)) answer(server);
      }
    }
  });
  const auto& result = finish();
  ended = true;
  others.join();
  EXPECT_EQ(result.fault.rfind("thread 7, connection 2, request 0: no response for 0.", 0), 0U)
      << result.fault;
}

TEST_F(SeveralConnections, AStopEndsAll) {
  start(plan_of(1'000'000'000, 2));
  for (FakeServer& server : servers_) answer(server);
  control_.stop();
  for (FakeServer& server : servers_) server.close();
  EXPECT_EQ(finish().fault, "");
}

TEST(LoadThread, AfterAStopWhatIsDueIsAwaited) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(1'000'000, 4), pool);
  for (int i = 0; i < 100; ++i) running.server().respond(reversed(running.server().read_request()));
  running.control().stop();
  running.answer_until_ended();
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(result.answered, result.sent);
  EXPECT_LT(result.answered, 1'000'000U);
}

TEST(LoadThread, AStopEndsItsSleep) {
  const auto pool = hello_pool();
  const Target nobody;
  RunControl control;
  control.stop();
  std::vector<net::Stream> streams;
  auto [own, other] = RunningLoad::make_sockets();
  streams.emplace_back(std::move(own));
  LoadThread load(7, 7, std::move(streams), plan_of(1, 1), {pool, nobody, control});
  const auto start = core::Clock::now() + kBound;  // the clock asks for nothing before
  load.run(start);
  EXPECT_LT(core::Clock::now(), start);
  EXPECT_EQ(load.fault(), "");
}

// A load thread that is out of memory says so without more memory.
TEST(LoadThread, ThereIsRoomForAFault) {
  const auto pool = hello_pool();
  const Target nobody;
  RunControl control;
  const LoadThread load(7, 7, {}, plan_of(1, 1), {pool, nobody, control});
  EXPECT_EQ(load.fault(), "");
  EXPECT_GE(load.fault().capacity(), 256U);
}

TEST(LoadThread, AConnectionThatIsGivenUpIsNotTriedAgain) {
  const auto pool = hello_pool();
  const core::Fd silent = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  const core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 8);
  const Target target{{net::local_address(silent.get()), net::local_address(listener.get())}, {}};
  LoadPlan plan = plan_of(10, 1);
  plan.stop_on_error = false;
  plan.connect_timeout = 0s;
  plan.response_timeout = 200ms;
  std::vector<net::Stream> streams;
  auto [first, first_server] = RunningLoad::make_sockets();
  auto [second, second_server] = RunningLoad::make_sockets();
  streams.emplace_back(std::move(first));
  streams.emplace_back(std::move(second));
  first_server.reset();  // the second is silent, and lost later
  RunControl control;
  LoadThread load(7, 7, std::move(streams), plan, {pool, target, control});
  load.run(core::Clock::now());
  const auto seen = seen_by(load);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::closed), 1U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::time_out), 1U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::refused), 2U);
  EXPECT_EQ(seen->total.errors.of(ErrorKind::never_connected), 2U);
  EXPECT_EQ(::accept(listener.get(), nullptr, nullptr), -1) << "nothing came after the refusals";
}

// The first size has fewer requests in the pool, as the second needs much of its memory.
TEST(LoadShare, ABatchOfSeveralSizesIsNotLimitedByTheirCounts) {
  const auto mixed = RequestPool::of_sizes({{3, 1}, {1U << 20, 1}}, {}, Service::echo);
  ASSERT_LT(mixed.count_of(0), 256U);
  EXPECT_EQ(DrivenLoad(plan_of(1, 1), mixed).share.longest_batch, 256U);
}

TEST(LoadThread, AfterAStopItLeavesWithinABound) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(100, 4), pool);
  for (int i = 0; i < 4; ++i) running.server().read_request();
  running.control().stop();
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(result.sent - result.answered, 4U);
}

TEST(LoadThread, ACloseAfterAStopIsNoFault) {
  const auto pool = hello_pool();
  RunningLoad running(plan_of(100, 4), pool);
  running.server().read_request();
  running.control().stop();
  running.server().close();
  const auto& result = running.finish();
  EXPECT_EQ(running.fault(), "");
  EXPECT_EQ(result.answered, 0U);
  EXPECT_EQ(result.sent, 4U);
}

TEST(LoadThread, WithADurationItEndsByTime) {
  const auto pool = hello_pool();
  auto plan = plan_of(0, 4);
  plan.duration = 100ms;
  const auto begin = core::Clock::now();
  RunningLoad running(plan, pool);
  running.answer_until_ended();
  const auto& result = running.finish();
  EXPECT_GE(core::Clock::now() - begin, 100ms);
  EXPECT_EQ(running.fault(), "");
  EXPECT_GE(result.valid, 4U);
  EXPECT_EQ(result.valid, result.sent);
  EXPECT_GT(result.last_answer, begin);
}

TEST(LoadThread, WhatIsAnsweredAfterTheEndIsKnown) {
  const auto pool = hello_pool();
  for (const std::uint32_t window : {1U, 4U}) {
    auto plan = plan_of(0, window);
    plan.duration = 20ms;
    RunningLoad running(plan, pool);
    Bytes olleh;
    for (std::uint32_t i = 0; i < window; ++i) olleh = reversed(running.server().read_request());
    std::this_thread::sleep_for(100ms);
    for (std::uint32_t i = 0; i < window; ++i) running.server().respond(olleh);
    const auto& result = running.finish();
    EXPECT_EQ(result.answered, window);
    EXPECT_EQ(result.answered_after_end, window);
    EXPECT_EQ(result.valid_after_end, window);
    EXPECT_EQ(result.rx_bytes_after_end, result.rx_bytes);
    expect_in_flight_as_served(result);
  }
}

}  // namespace
}  // namespace offload::client
