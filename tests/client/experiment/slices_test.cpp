#include "apps/client/experiment/slices.hpp"

#include <gtest/gtest.h>

#include "tests/client/run/reversing_server.hpp"

namespace offload::client {
namespace {

double figure(const Slice& slice, SliceFigure of) {
  return slice.figures.us[static_cast<std::size_t>(of)];
}

class SliceRunnerTest : public testing::Test {
 protected:
  [[nodiscard]] Options options() const {
    Options made = options_for_port(server_.port());
    made.duration = 60ms;
    made.warmup = 5ms;
    made.response_timeout = 500ms;
    made.count_errors = true;
    return made;
  }

  ReversingServer server_;
  core::Signals signals_;
};

TEST_F(SliceRunnerTest, ASliceHasTheFiguresOfItsAnswers) {
  Options closed = options();
  closed.response_timeout = kBound;
  closed.max_concurrent_messages = 128;
  closed.duration = 200ms;
  SliceRunner runner(closed, signals_);
  const Slice slice = runner.run(0);
  EXPECT_FALSE(slice.failed || slice.interrupted || slice.client_late) << slice.fault;
  EXPECT_EQ(slice.fault, "");
  EXPECT_GT(figure(slice, SliceFigure::low), 0);
  EXPECT_LE(figure(slice, SliceFigure::low), figure(slice, SliceFigure::p50));
  EXPECT_LE(figure(slice, SliceFigure::p50), figure(slice, SliceFigure::p99));
  const RunResult sum = runner.take_sum();
  EXPECT_EQ(sum.total->valid, sum.total->answered);
  EXPECT_GE(figure(slice, SliceFigure::p99),
            core::to_micros(sum.total->service.percentile(0.9)) * 0.9);
  // The rate is of the answers until the end of sending, over the time that was asked for.
  EXPECT_LE(figure(slice, SliceFigure::per_answer),
            200'000 / static_cast<double>(sum.total->valid - 128));
  EXPECT_GE(figure(slice, SliceFigure::per_answer),
            200'000 / static_cast<double>(sum.total->valid) * 0.999);
}

// Each figure is at least the time of the slice. The latencies of the slice before do not count.
TEST_F(SliceRunnerTest, ASliceWithoutAnAnswerHasItsWholeTime) {
  SliceRunner runner(options(), signals_);
  EXPECT_FALSE(runner.run(0).failed);
  server_.set_silent(true);
  const Slice slice = runner.run(1);
  EXPECT_TRUE(slice.failed);
  EXPECT_NE(slice.fault.find("no response for 0."), std::string::npos) << slice.fault;
  EXPECT_EQ(figure(slice, SliceFigure::low), 60'000);
  EXPECT_EQ(figure(slice, SliceFigure::p50), 60'000);
  EXPECT_EQ(figure(slice, SliceFigure::p99), 0);
  EXPECT_EQ(figure(slice, SliceFigure::per_answer), 60'000);
  EXPECT_EQ(runner.counts().slices, 2U);
  EXPECT_EQ(runner.counts().client_late, 0U);
  EXPECT_EQ(runner.counts().server_late, 0U);
  const RunResult sum = runner.take_sum();
  EXPECT_EQ(sum.verdict.code, LoadVerdict::Code::cut_short);
  EXPECT_EQ(sum.faults, std::vector{slice.fault});
  EXPECT_GE(sum.unanswered, 4U);
}

TEST_F(SliceRunnerTest, TheSumIsOfAllSlicesWithoutTheGaps) {
  Options closed = options();
  closed.response_timeout = kBound;
  SliceRunner runner(closed, signals_);
  runner.run(0);
  const std::uint64_t first = server_.answered();
  runner.run(1);
  EXPECT_GT(server_.answered(), first);
  EXPECT_EQ(runner.options().seed, 1U);  // of the last slice
  const RunResult sum = runner.take_sum();
  EXPECT_EQ(sum.setting.max_concurrent_messages, 4U);
  EXPECT_FALSE(sum.setting.rate);
  EXPECT_FALSE(sum.udp);
  EXPECT_GT(sum.started_at_unix_s, 1e9);
  EXPECT_GT(sum.busy, 0);
  EXPECT_EQ(sum.unanswered, 0U);
  EXPECT_EQ(sum.verdict.code, LoadVerdict::Code::closed_loop);
  EXPECT_GE(sum.duration, 100ms);  // of two slices, not of one
  EXPECT_EQ(sum.total->end - sum.total->begin, sum.duration);
  EXPECT_EQ(sum.total->answered_after_end, 0U);
  EXPECT_EQ(sum.total->valid_after_end, 0U);
  EXPECT_EQ(sum.total->rx_bytes_after_end, 0U);
  ASSERT_GE(sum.seconds.size(), 2U);
  EXPECT_GE(sum.seconds.back().start_s - sum.seconds.front().start_s, 0.05);
  std::uint64_t operations = 0;
  for (const auto& second : sum.seconds) operations += second.operations;
  EXPECT_EQ(operations, sum.total->answered);
  // Its mean would be less if the gaps between the slices counted.
  EXPECT_GT(sum.mean_in_flight(), 2);
  EXPECT_LE(sum.mean_in_flight(), 4.001);
}

TEST_F(SliceRunnerTest, AnOpenLoopHasNoTimePerAnswer) {
  Options open = options();
  open.rate = 500;
  open.lag_tolerance = kBound;
  SliceRunner runner(open, signals_);
  const Slice slice = runner.run(0);
  EXPECT_GT(figure(slice, SliceFigure::low), 0);
  EXPECT_EQ(figure(slice, SliceFigure::p99), 0);  // of 30 latencies
  EXPECT_EQ(figure(slice, SliceFigure::per_answer), 0);
}

// All requests are due at once and sent one after the other. The median of the times since their
// sending would be that of single answers.
TEST_F(SliceRunnerTest, LatenciesOfAnOpenLoopBeginWhenRequestsAreDue) {
  Options open = options();
  open.rate = 100;
  open.burst = 60;
  open.max_concurrent_messages = 1;
  open.lag_tolerance = open.response_timeout = kBound;
  open.warmup = {};
  open.duration = 200ms;
  SliceRunner runner(open, signals_);
  const Slice slice = runner.run(0);
  EXPECT_FALSE(slice.failed) << slice.fault;
  const RunResult sum = runner.take_sum();
  EXPECT_GE(figure(slice, SliceFigure::p50),
            core::to_micros(sum.total->response.percentile(0.25)) * 0.9);
}

// The only request is due when the warm-up begins.
TEST_F(SliceRunnerTest, RequestsOfTheWarmUpDoNotCount) {
  Options open = options();
  open.rate = 0.1;
  open.warmup = 500ms;
  open.lag_tolerance = open.response_timeout = kBound;
  SliceRunner runner(open, signals_);
  EXPECT_EQ(runner.run(0).figures.us, SliceFigures{}.us);
  EXPECT_EQ(server_.answered(), 1U);
}

TEST_F(SliceRunnerTest, WithoutARequestThereAreNoFigures) {
  Options open = options();
  open.rate = 0.01;
  open.seed = 1;  // the first is due after a minute
  SliceRunner runner(open, signals_);
  EXPECT_EQ(runner.run(0).figures.us, SliceFigures{}.us);
}

TEST_F(SliceRunnerTest, LateSlicesAreCountedByWhoWasLate) {
  Options open = options();
  open.rate = 1000;
  open.max_concurrent_messages = 1;
  open.lag_tolerance = kBound;
  open.duration = 150ms;
  open.response_timeout = kBound;
  SliceRunner of_server(open, signals_);
  server_.set_silent(true);
  std::jthread later([&] {  // answers when there is nothing more to send
    std::this_thread::sleep_for(400ms);
    server_.set_silent(false);
  });
  EXPECT_FALSE(of_server.run(0).client_late);
  EXPECT_EQ(of_server.counts().server_late, 1U);
  EXPECT_EQ(of_server.counts().client_late, 0U);
  EXPECT_EQ(of_server.take_sum().verdict.code, LoadVerdict::Code::server_late);
  later.join();

  open.max_concurrent_messages = 1000;
  open.lag_tolerance = 1ns;
  SliceRunner of_client(open, signals_);
  EXPECT_TRUE(of_client.run(0).client_late);
  EXPECT_EQ(of_client.counts().client_late, 1U);
  EXPECT_EQ(of_client.counts().server_late, 0U);
  EXPECT_EQ(of_client.counts().client_busy, 0U);
}

}  // namespace
}  // namespace offload::client
