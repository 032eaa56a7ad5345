#include "apps/client/run/prepare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/run/reversing_server.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::client {
namespace {

using core::Duration;

/// A run with a record of each request.
struct Logged {
  RunResult result;
  core::TimePoint before;                                          ///< before the start
  std::map<std::uint32_t, std::vector<core::TimePoint>> intended;  ///< by connection
  std::vector<std::uint32_t> sizes;  ///< of requests, in the order of the log
};

Logged run_logged(const Options& options) {
  core::Signals signals;
  RequestLog log;
  Logged logged;
  RunObserver observer;
  observer.log = &log;
  observer.on_start = [&] { logged.before = core::Clock::now(); };
  const Load load(options, signals);
  logged.result =
      run_load(options, {options.rate, options.max_concurrent_messages}, load, signals, observer);
  for (const auto& chunk : log.take()) {
    for (const RequestRecord& record : chunk) {
      logged.intended[record.connection].push_back(record.intended);
      logged.sizes.push_back(record.bytes);
    }
  }
  for (auto& [connection, times] : logged.intended) std::ranges::sort(times);
  return logged;
}

/// Returns the time from one to the other in milliseconds.
std::int64_t ms_between(core::TimePoint one, core::TimePoint other) {
  return std::chrono::round<std::chrono::milliseconds>(other - one).count();
}

/// Expects that the gaps between `times` are those of `expected`.
void expect_times(Arrivals expected, const std::vector<core::TimePoint>& times) {
  ASSERT_GT(times.size(), 10U);
  const Duration first = expected.next();
  for (const core::TimePoint time : times) {
    ASSERT_EQ(time - times.front(), expected.next() - first);
    expected.advance();
  }
}

class PrepareTest : public testing::Test {
 protected:
  [[nodiscard]] Options options() const { return options_for_port(server_.port()); }
  [[nodiscard]] Options open_loop(double rate) const {
    Options made = options();
    made.rate = rate;
    made.max_concurrent_messages = 1000;
    made.lag_tolerance = kBound;  // how late this machine is does not matter here
    made.duration = 200ms;
    return made;
  }
  /// Returns the numbers of connections of kinds with these weights.
  [[nodiscard]] std::vector<std::uint64_t> split(const std::vector<double>& weights,
                                                 std::uint32_t threads,
                                                 std::uint32_t connections) const {
    Options made = options();
    made.thread_count = threads;
    made.connections = connections;
    made.iteration_count = 4;
    for (const double weight : weights) {
      RequestKind kind;
      kind.name = "k" + std::to_string(made.kinds.size());
      kind.weight = weight;
      made.kinds.push_back(kind);
    }
    const Logged logged = run_logged(made);
    EXPECT_TRUE(logged.result.faults.empty());
    EXPECT_EQ(logged.intended.size(), std::size_t{threads} * connections);
    std::vector<std::uint64_t> counts;
    for (const KindResult& kind : logged.result.kinds) {
      EXPECT_EQ(kind.name, "k" + std::to_string(counts.size()));
      EXPECT_EQ(kind.port, server_.port());
      EXPECT_EQ(kind.total->valid, 4 * kind.connections);
      counts.push_back(kind.connections);
    }
    return counts;
  }

  const ReversingServer server_;
};

using Counts = std::vector<std::uint64_t>;

TEST_F(PrepareTest, KindsHaveTheirShareOfTheConnections) {
  EXPECT_EQ(split({1, 2, 4}, 2, 5), (Counts{1, 3, 6}));  // 1.43, 2.86, 5.71
  EXPECT_EQ(split({4, 2, 1}, 1, 10), (Counts{6, 3, 1}));
  EXPECT_EQ(split({100, 1, 1, 1}, 1, 5), (Counts{2, 1, 1, 1}));  // at least one each
  EXPECT_EQ(split({1, 3}, 2, 2), (Counts{1, 3}));
}

TEST_F(PrepareTest, KindsHaveTheirShareOfTheRate) {
  Options made = open_loop(100);
  made.connections = 4;
  for (const double weight : {1.0, 3.0}) {
    RequestKind kind;
    kind.name = weight == 1 ? "few" : "many";
    kind.weight = weight;
    made.kinds.push_back(kind);
  }
  const Logged logged = run_logged(made);
  ASSERT_EQ(logged.result.kinds.size(), 2U);
  EXPECT_EQ(logged.result.kinds[0].rate, 25);
  EXPECT_EQ(logged.result.kinds[1].rate, 75);
  EXPECT_DOUBLE_EQ(logged.result.kinds[1].share, 0.75);
  EXPECT_EQ(logged.result.kinds[0].total->due, 5U);
  EXPECT_EQ(logged.result.kinds[1].total->due, 15U);
}

// The listener has room for one connection, which is never accepted.
TEST_F(PrepareTest, ConnectionsThatDoNotComeAboutAreCounted) {
  const core::Fd listener = net::bind_tcp(net::resolve("127.0.0.1", 0).front());
  net::start_listening(listener.get(), 0);
  Options made = options_for_port(net::local_address(listener.get()).port());
  made.connections = 3;
  made.iteration_count = 1;
  made.connect_timeout = 100ms;
  made.response_timeout = 50ms;
  made.count_errors = true;
  const Logged logged = run_logged(made);
  EXPECT_EQ(logged.result.total->errors.of(ErrorKind::never_connected), 2U);
  EXPECT_EQ(logged.result.total->errors.of(ErrorKind::time_out), 1U);
  EXPECT_EQ(logged.result.total->connect.count(), 1U);
  ASSERT_EQ(logged.result.faults.size(), 2U);
  EXPECT_NE(logged.result.faults[0].find("(--connect-timeout is over)"), std::string::npos);
}

TEST_F(PrepareTest, ASlotThinksBetweenItsRequests) {
  Options made = options();
  made.iteration_count = 3;
  made.max_concurrent_messages = 1;
  made.think = 30ms;
  const Logged logged = run_logged(made);
  EXPECT_EQ(logged.result.total->valid, 3U);
  const auto& times = logged.intended.at(0);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_GE(times[1] - times[0], 30ms);
  EXPECT_GE(times[2] - times[1], 30ms);
}

// The times of thread 0 are those of connection 0, of thread 1 those of connection 1.
TEST_F(PrepareTest, RandomArrivalsDifferByThreadAndSeed) {
  Options made = open_loop(400);
  made.arrivals = ArrivalKind::poisson;
  made.thread_count = 2;
  made.seed = 3;
  const Logged logged = run_logged(made);
  for (std::uint32_t number = 0; number < 2; ++number) {
    expect_times(Arrivals::poisson(200, (std::uint64_t{3} << 16) + number),
                 logged.intended.at(number));
  }
}

// Each kind has a thread: thread 0 has connection 0, thread 1 connection 1.
TEST_F(PrepareTest, RandomArrivalsDifferByKind) {
  Options made = open_loop(400);
  made.arrivals = ArrivalKind::poisson;
  made.connections = 2;
  made.kinds.resize(2);
  made.kinds[0].name = "one";
  made.kinds[1].name = "other";
  const Logged logged = run_logged(made);
  for (std::uint32_t number = 0; number < 2; ++number) {
    expect_times(Arrivals::poisson(200, number), logged.intended.at(number));
  }
}

TEST_F(PrepareTest, ThreadsHaveConstantArrivalsInTurn) {
  Options made = open_loop(640);
  made.thread_count = 3;
  const Logged logged = run_logged(made);
  for (std::uint32_t number = 0; number < 3; ++number) {
    expect_times(Arrivals::constant(640.0 / 3, number / 640.0), logged.intended.at(number));
  }
}

TEST_F(PrepareTest, ThreadsTakeTurnsAfterThePhaseOfTheSeed) {
  Options made = open_loop(5);
  made.duration = 500ms;
  made.thread_count = 2;
  made.seed = 1;
  const Logged logged = run_logged(made);
  ASSERT_EQ(logged.intended.size(), 2U);
  const core::TimePoint first = logged.intended.at(0).front();
  EXPECT_GE(first - logged.before, 123ms);  // the golden ratio of 200 ms
  EXPECT_EQ(ms_between(first, logged.intended.at(1).front()), 200);
  EXPECT_EQ(logged.result.total->due, 2U);
}

TEST_F(PrepareTest, ABurstIsDueAtOnce) {
  Options made = open_loop(25);
  made.duration = 500ms;
  made.burst = 5;
  made.seed = 1;
  const Logged logged = run_logged(made);
  const auto& times = logged.intended.at(0);
  ASSERT_EQ(times.size(), 10U);
  EXPECT_GE(times[0] - logged.before, 123ms);
  EXPECT_EQ(ms_between(times[0], times[4]), 0);
  EXPECT_EQ(ms_between(times[0], times[5]), 200);
  EXPECT_EQ(ms_between(times[5], times[9]), 0);
}

// Their lengths are powers of 2, so only one of each has this sum.
TEST_F(PrepareTest, RequestsOfAFileAreSentInTheirOrder) {
  const support::TempDir directory;
  std::string file;
  for (std::size_t length = 1; length <= 128; length *= 2) {
    const auto frame = protocol::make_frame(MessageId::client_request, Bytes(length));
    file.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  directory.write("requests", file);
  Options made = options();
  made.requests_file = directory.file("requests");
  made.verification = *Verification::parse("length");
  made.in_order = true;
  made.iteration_count = 8;
  const Logged logged = run_logged(made);
  EXPECT_EQ(logged.result.total->valid, 8U);
  EXPECT_EQ(logged.result.total->tx_bytes, 8 * protocol::kFrameHeaderSize + 255);
}

TEST_F(PrepareTest, TheSeedDecidesWhichRequestsAreSent) {
  const auto sizes_with = [&](std::uint64_t seed) {
    Options made = options();
    made.sizes = SizeMix{{1, 1}, {2, 1}, {3, 1}};
    made.max_concurrent_messages = 1;
    made.iteration_count = 50;
    made.seed = seed;
    return run_logged(made).sizes;
  };
  const auto one = sizes_with(1);
  EXPECT_EQ(one.size(), 50U);
  EXPECT_EQ(sizes_with(1), one);
  EXPECT_NE(sizes_with(2), one);
}

TEST_F(PrepareTest, AResponseMayComeTooLate) {
  Options made = options();
  made.deadline = 1ns;
  made.count_errors = true;
  made.iteration_count = 3;
  EXPECT_EQ(run_logged(made).result.total->errors.of(ErrorKind::late), 3U);
}

TEST_F(PrepareTest, StepsOfTheRateFollowEachOther) {
  Options made = open_loop(75);
  made.rate_steps = {{50, 100ms}, {100, 100ms}};
  const Logged logged = run_logged(made);
  const auto& times = logged.intended.at(0);
  EXPECT_EQ(logged.result.total->due, 15U);
  ASSERT_GE(times.size(), 10U);  // a busy machine may miss the last ones
  EXPECT_EQ(ms_between(times[0], times[1]), 20);
  EXPECT_EQ(ms_between(times[8], times[9]), 10);
}

TEST_F(PrepareTest, AnOpenLoopWithoutADurationSendsTheRequestsOfAllConnections) {
  Options made = open_loop(1000);
  made.duration.reset();
  made.connections = 3;
  made.thread_count = 2;
  made.iteration_count = 7;
  const Logged logged = run_logged(made);
  EXPECT_EQ(logged.result.total->sent, 42U);
  EXPECT_EQ(logged.result.total->valid, 42U);
}

TEST_F(PrepareTest, AnOpenLoopOfKindsSendsTheRequestsOfTheirConnections) {
  Options made = open_loop(1000);
  made.duration.reset();
  made.connections = 4;
  made.iteration_count = 7;
  made.kinds.resize(2);
  made.kinds[0].name = "few";
  made.kinds[1].name = "many";
  made.kinds[1].weight = 3;
  const Logged logged = run_logged(made);
  ASSERT_EQ(logged.result.kinds.size(), 2U);
  EXPECT_EQ(logged.result.kinds[0].total->valid, 7U);
  EXPECT_EQ(logged.result.kinds[1].total->valid, 21U);
}

// Neither the whole nor a kind has what was answered during the warm-up.
TEST_F(PrepareTest, KindsHaveTheirShareOfTheAnswersAfterTheWarmUp) {
  Options made = options();
  made.connections = 2;
  made.warmup = 100ms;
  made.duration = 100ms;
  made.kinds.resize(2);
  made.kinds[0].name = "one";
  made.kinds[1].name = "other";
  const Logged logged = run_logged(made);
  ASSERT_EQ(logged.result.kinds.size(), 2U);
  const std::uint64_t one = logged.result.kinds[0].total->valid;
  const std::uint64_t other = logged.result.kinds[1].total->valid;
  EXPECT_GT(one, 0U);
  EXPECT_GT(other, 0U);
  EXPECT_EQ(one + other, logged.result.total->valid);
  EXPECT_LT(one + other, logged.sizes.size());
}

}  // namespace
}  // namespace offload::client
