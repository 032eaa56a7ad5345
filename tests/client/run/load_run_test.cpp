#include "apps/client/run/load_run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <string>

#include "tests/client/run/reversing_server.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

Options options_for(const ReversingServer& server) {
  Options options = options_for_port(server.port());
  options.thread_count = 2;
  options.connections = 3;
  options.iteration_count = 20;
  return options;
}

RunResult run(const Options& options, core::Signals& signals) {
  const Load load(options, signals);
  return run_load(options, {options.rate, options.max_concurrent_messages}, load, signals, {});
}

TEST(LoadRun, AllThreadsAndConnectionsAreCountedTogether) {
  const ReversingServer server;
  core::Signals signals;
  const RunResult result = run(options_for(server), signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.total->answered, 2U * 3 * 20);
  EXPECT_EQ(result.total->valid, 2U * 3 * 20);
  EXPECT_EQ(result.unanswered, 0U);
  EXPECT_GT(result.duration, core::Duration{});
}

TEST(LoadRun, RandomRequestsAreCheckedAgainstTheService) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.sizes = SizeMix{{100, 1}};
  EXPECT_TRUE(run(options, signals).faults.empty());
  options.service = Service::echo;  // which the server does not do
  EXPECT_FALSE(run(options, signals).faults.empty());
}

TEST(LoadRun, AFaultOfOneThreadStopsAll) {
  const ReversingServer server(0);
  core::Signals signals;
  Options options = options_for(server);
  options.iteration_count = 1'000'000'000'000;
  const RunResult result = run(options, signals);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_NE(result.faults.front().find("request 0: the response differs at offset 0 of 5"),
            std::string::npos)
      << result.faults.front();
  EXPECT_LT(result.total->answered, 6U * 1'000'000'000'000);
  EXPECT_EQ(result.verdict.code, LoadVerdict::Code::cut_short);
  EXPECT_EQ(result.verdict.text, "there is no verdict: an error ended the run");
}

TEST(LoadRun, ARunThatIsCutShortLastsUntilItsLastAnswer) {
  const ReversingServer server(10);
  core::Signals signals;
  Options options = options_for(server);
  options.duration = 1h;
  const core::TimePoint before = core::Clock::now();
  const RunResult result = run(options, signals);
  EXPECT_GT(result.duration, core::Duration{});
  EXPECT_LE(result.duration, core::Clock::now() - before);
}

TEST(LoadRun, WhatFailsBeforeTheStartEndsTheThreads) {
  const ReversingServer server;
  core::Signals signals;
  const Options options = options_for(server);
  const Load load(options, signals);
  RunObserver observer;
  observer.on_start = [] { throw std::bad_alloc(); };
  EXPECT_THROW((void)run_load(options, {options.rate, options.max_concurrent_messages}, load,
                              signals, observer),
               std::bad_alloc);
  EXPECT_EQ(server.answered(), 0U);
}

TEST(LoadRun, IntervalsOfAllThreadsAreTakenDuringTheRun) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.warmup = std::chrono::milliseconds(50);
  options.duration = options.warmup;
  int intervals = 0;
  int during_the_run = 0;
  RunObserver observer;
  observer.on_interval = [&](const Interval&) { ++intervals; };
  observer.on_turn = [&] { during_the_run = intervals; };
  const Load load(options, signals);
  (void)run_load(options, {options.rate, options.max_concurrent_messages}, load, signals, observer);
  EXPECT_GE(during_the_run, 4);  // two threads have one of the warm-up and another
}

TEST(LoadRun, AWrongResponseIsAnAnswer) {
  const ReversingServer server(0);
  core::Signals signals;
  Options options = options_for(server);
  options.count_errors = true;
  const RunResult result = run(options, signals);
  EXPECT_EQ(result.total->valid, result.total->sent - 1);
  EXPECT_EQ(result.total->answered, result.total->sent);
  EXPECT_EQ(result.unanswered, 0U);
}

TEST(LoadRun, ACountedErrorOfOneThreadDoesNotEndTheOthers) {
  const ReversingServer wrong(0);
  ReversingServer silent;
  silent.set_silent(true);
  core::Signals signals;
  Options options = options_for(wrong);
  options.connections = 1;
  options.count_errors = true;
  options.response_timeout = 50ms;
  options.kinds = {*RequestKind::parse("wrong:size=5"), *RequestKind::parse("silent:size=5")};
  options.kinds[1].port = silent.port();
  const RunResult result = run(options, signals);
  EXPECT_NE(result.kinds[0].total->errors.total(), 0U);
  EXPECT_EQ(result.kinds[1].total->errors.of(ErrorKind::time_out), 20U);
}

TEST(LoadRun, ErrorsOfTheWarmUpCount) {
  const ReversingServer server(0);
  core::Signals signals;
  Options options = options_for(server);
  options.count_errors = true;
  options.warmup = std::chrono::milliseconds(500);  // the first response comes within it
  options.duration = std::chrono::milliseconds(20);
  const RunResult result = run(options, signals);
  EXPECT_EQ(result.total->errors.total(), 1U);
  EXPECT_TRUE(result.has_errors());
  EXPECT_EQ(result.unanswered, 0U);
}

TEST(LoadRun, AnOpenLoopSendsAsManyAsAreDue) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  options.rate = 2000;
  options.duration = std::chrono::milliseconds(200);
  options.lag_tolerance = kBound;  // how late this machine is does not matter here
  const RunResult result = run(options, signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_EQ(result.total->due, 400U);
  EXPECT_EQ(result.total->valid + result.total->never_sent, 400U);
  EXPECT_EQ(result.total->response.count(), result.total->valid);
  EXPECT_EQ(result.total->lag.count(), 400U);
}

TEST(LoadRun, AScheduleIsReplayedByAllThreads) {
  const ReversingServer server;
  core::Signals signals;
  const support::TempDir directory;
  directory.write("schedule", "0 10\n1ms 100\n2ms 10\n3ms 5\n4ms 10\n5ms 1\n5ms 1\n5ms 1\n5ms 1\n");
  Options options = options_for(server);
  options.schedule = directory.file("schedule");
  options.iteration_count = 1;  // the schedule decides
  const RunResult result = run(options, signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_EQ(result.total->valid, 9U);
  EXPECT_EQ(result.total->tx_bytes, 9 * protocol::kFrameHeaderSize + 139);
}

// Its requests are due until 200 ms, half of which are the warm-up.
TEST(LoadRun, AScheduleHasNoDurationButThatAfterTheWarmUp) {
  const ReversingServer server;
  core::Signals signals;
  const support::TempDir directory;
  directory.write("schedule", "0 10\n50ms 10\n150ms 10\n200ms 10\n");
  Options options = options_for(server);
  options.schedule = directory.file("schedule");
  options.warmup = 100ms;
  options.lag_tolerance = kBound;
  const core::TimePoint before = core::Clock::now();
  const RunResult result = run(options, signals);
  EXPECT_GE(result.duration, 100ms);
  EXPECT_LE(result.duration, core::Clock::now() - before - 100ms);
  EXPECT_EQ(result.total->due, 2U);
}

TEST(LoadRun, WithoutAServerItThrows) {
  const core::Fd bound = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  core::Signals signals;
  Options options;
  options.server_address = "127.0.0.1";
  options.server_port = net::local_address(bound.get()).port();
  options.connect_timeout = std::chrono::milliseconds(20);
  EXPECT_EQ(support::thrown_by([&] { run(options, signals); }).code(), core::ErrorCode::timed_out);
}

TEST(LoadRun, WhatIsNeverAnsweredIsCounted) {
  ReversingServer server;
  server.set_silent(true);
  core::Signals signals;
  Options options = options_for(server);
  options.iteration_count = 3;
  options.count_errors = true;
  options.response_timeout = std::chrono::milliseconds(50);
  const RunResult result = run(options, signals);
  EXPECT_EQ(result.total->sent, 18U);
  EXPECT_EQ(result.unanswered, 18U);
  EXPECT_EQ(result.total->errors.of(ErrorKind::time_out), 18U);
  EXPECT_EQ(result.faults.size(), 2U);           // the first of each thread
  EXPECT_EQ(result.duration, core::Duration{});  // the wait for responses does not count
}

TEST(LoadRun, TheContentOfAFileIsTheRequest) {
  const ReversingServer server;
  core::Signals signals;
  const support::TempDir directory;
  directory.write("content", "seven b");
  Options options = options_for(server);
  options.payload = *Payload::parse("file:" + directory.file("content"));
  const RunResult result = run(options, signals);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  EXPECT_EQ(result.total->tx_bytes, 120U * (protocol::kFrameHeaderSize + 7));
}

TEST(LoadRun, ItBeginsAtTheTimeSaid) {
  const ReversingServer server;
  core::Signals signals;
  Options options = options_for(server);
  const support::LogCapture log;
  const auto unix_now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  options.start_at = unix_now() + 0.25;
  EXPECT_GE(run(options, signals).started_at_unix_s, *options.start_at);
  EXPECT_TRUE(log.has("6 connected to 127.0.0.1 port " + std::to_string(server.port()) + "\n"));
  options.start_at = unix_now() - 100;
  EXPECT_GE(run(options, signals).started_at_unix_s, *options.start_at + 100);
  EXPECT_TRUE(log.has("warning: begun 100."));
}

/// Runs `options` in this process, which ends with status 0 if `check` holds. The signal comes when
/// the connections are there; the run takes it.
template <class Check>
[[noreturn]] void run_and_interrupt(bool at_start, const Check& check) {
  core::Signals signals;
  const ReversingServer server;
  Options options = options_for(server);
  options.duration = 1h;
  if (!at_start) options.start_at = 4e9;
  RunObserver observer;
  const auto interrupt = [] { ::kill(::getpid(), SIGTERM); };
  if (at_start) observer.on_start = interrupt;
  int intervals = 0;
  if (!at_start) {
    observer.on_interval = [&](const Interval&) {
      if (intervals++ == 0) interrupt();
    };
  }
  const Load load(options, signals);
  const RunResult result =
      run_load(options, {options.rate, options.max_concurrent_messages}, load, signals, observer);
  std::_Exit(result.interrupted && result.faults.empty() && signals.take() == 0 &&
                     result.verdict.text == "there is no verdict: a signal ended the run" &&
                     check(result)
                 ? 0
                 : 1);
}

TEST(LoadRunDeathTest, ASignalEndsTheRun) {
  EXPECT_EXIT(run_and_interrupt(true,
                                [](const RunResult& result) {
                                  return result.total->answered == result.total->sent &&
                                         result.duration < 1h;
                                }),
              testing::ExitedWithCode(0), "");
}

TEST(LoadRunDeathTest, ASignalEndsTheWaitForTheStart) {
  EXPECT_EXIT(
      run_and_interrupt(false, [](const RunResult& result) { return result.total->sent == 0; }),
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::client
