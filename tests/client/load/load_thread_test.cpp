#include "apps/client/load/load_thread.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

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
      auto [own, other] = make_sockets();
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
  auto [own, other] = make_sockets();
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
  auto [first, first_server] = make_sockets();
  auto [second, second_server] = make_sockets();
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

TEST(LoadThread, AFaultEndsItBeforeTheNextConnectionIsLookedAt) {
  const auto pool = hello_pool();
  const Target nobody;
  LoadPlan plan = plan_of(1, 1);
  plan.response_timeout = 50ms;
  std::vector<net::Stream> streams;
  std::vector<core::Fd> servers;  // which are silent
  for (int i = 0; i < 3; ++i) {
    auto [own, other] = make_sockets();
    streams.emplace_back(std::move(own));
    servers.push_back(std::move(other));
  }
  RunControl control;
  LoadThread load(7, 7, std::move(streams), plan, {pool, nobody, control});
  load.run(core::Clock::now());
  EXPECT_EQ(seen_by(load)->total.errors.total(), 1U);
}

// Here another socket that has no room is in the place of the one that it watches.
TEST(LoadThread, ARefusalOfTheSystemIsAFaultAndStopsTheOthers) {
  const auto pool = random_pool(std::size_t{1} << 20, Service::echo);
  const Target nobody;
  auto [own, other] = make_sockets();
  auto [full, full_other] = make_sockets();
  const int fd = own.get();
  std::vector<net::Stream> streams;
  streams.emplace_back(std::move(own));
  RunControl control;
  LoadThread load(7, 7, std::move(streams), plan_of(1, 1), {pool, nobody, control});
  ASSERT_EQ(::dup2(full.get(), fd), fd);
  load.run(core::Clock::now());
  EXPECT_TRUE(load.fault().starts_with("a load thread failed: ")) << load.fault();
  EXPECT_TRUE(control.stopping());
}

// The end of the warm-up, which is that of an interval, would wake it later.
TEST(LoadThread, SlotsThatThinkGoOnInTime) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(10, 1);
  plan.think = 20ms;
  plan.warmup = 10s;
  RunningLoad running(plan, pool);
  running.answer(10, 5);
  const auto& seen = running.finish();
  EXPECT_GE(seen.end - seen.begin, 9 * 20ms);
  EXPECT_LT(seen.end - seen.begin, plan.warmup / 2);
}

TEST(LoadThread, AStopOfAnOpenLoopGivesUpWhatIsDueUntilThen) {
  const auto pool = hello_pool();
  RunningLoad running(open_plan(1000, 1'000'000, 2), pool);
  for (int i = 0; i < 2; ++i) running.server().read_request();
  std::this_thread::sleep_for(20ms);
  running.control().stop();
  const auto& seen = running.finish();
  EXPECT_EQ(seen.sent, 2U);
  EXPECT_EQ(seen.due, seen.sent + seen.never_sent);
  EXPECT_EQ(seen.unfinished, seen.due);
  EXPECT_GE(seen.due, 20U);
  EXPECT_LT(seen.due, 500'000U);
}

// Sleeps for requests that become due would end 50 us late.
TEST(LoadThread, AnOpenLoopSleepsPrecisely) {
  const auto pool = hello_pool();
  const Target nobody;
  RunControl control;
  control.stop();
  const std::jthread thread([&] {
    LoadThread load(7, 7, {}, open_plan(1000, 1, 1), {pool, nobody, control});
    load.run(core::Clock::now());
    EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), 1);
  });
}

/// Works for a while, so that this thread has had a processor before it begins.
void work_for(core::Duration time) {
  const core::TimePoint end = core::Clock::now() + time;
  while (core::Clock::now() < end) continue;
}

TEST(LoadThread, ItIsBusyWithItsOwnWorkOnly) {
  const auto pool = hello_pool();
  const Target nobody;
  RunControl control;
  auto [own, other] = make_sockets();
  std::vector<net::Stream> streams;
  streams.emplace_back(std::move(own));
  LoadPlan plan = plan_of(0, 1);
  plan.duration = plan.response_timeout = 200ms;
  LoadThread load(7, 7, std::move(streams), plan, {pool, nobody, control});
  work_for(300ms);
  load.run(core::Clock::now());  // the server is silent
  EXPECT_LT(load.busy(), 0.9);
}

// The time until the last answer does not count.
TEST(LoadThread, ItIsBusyWhileItSends) {
  const auto pool = hello_pool();
  LoadPlan plan = plan_of(0, 16);
  plan.duration = 100ms;
  auto [own, other] = make_sockets();
  FakeServer server(std::move(other));
  const Target nobody;
  RunControl control;
  std::vector<net::Stream> streams;
  streams.emplace_back(std::move(own));
  LoadThread load(7, 7, std::move(streams), plan, {pool, nobody, control});
  std::jthread thread([&] { load.run(core::Clock::now()); });
  Bytes olleh;
  int owed = 0;
  const auto read = [&] {
    if (!server.has_unread() && !server.read_more(10ms)) return false;
    olleh = reversed(server.read_request());
    ++owed;
    return true;
  };
  const auto respond = [&] {
    server.respond(olleh);
    --owed;
  };
  const core::TimePoint end = core::Clock::now() + 100ms;
  while (core::Clock::now() < end) {
    read();
    if (owed > 1) respond();  // one is always in flight
  }
  std::this_thread::sleep_for(1500ms);
  while (read()) continue;
  while (owed > 0) respond();
  thread.join();
  EXPECT_EQ(load.fault(), "");
  EXPECT_GT(load.busy(), 0.1 / 1.6);
}

}  // namespace
}  // namespace offload::client
