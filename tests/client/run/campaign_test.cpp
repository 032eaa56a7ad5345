#include "apps/client/run/campaign.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/client/run/reversing_server.hpp"

namespace offload::client {
namespace {

/// Makes the runs of `options`, and checks that each is told about.
Campaign campaign_of(const Options& options, core::Signals& signals,
                     const RunObserver& observer = {}) {
  Campaign campaign;
  std::size_t told = 0;
  const Load load(options, signals);
  run_campaign(
      options, load, signals, observer,
      [&](const RunResult& run) {
        EXPECT_EQ(&run, &campaign.runs.back());
        EXPECT_EQ(++told, campaign.runs.size());
      },
      campaign);
  EXPECT_EQ(told, campaign.runs.size());
  return campaign;
}

class CampaignTest : public testing::Test {
 protected:
  explicit CampaignTest(std::uint64_t wrong = UINT64_MAX) : server_(wrong) {}

  [[nodiscard]] Options options() const {
    Options made = options_for_port(server_.port());
    made.iteration_count = 20;
    return made;
  }
  Campaign made(const Options& options) { return campaign_of(options, signals_); }

  const ReversingServer server_;
  core::Signals signals_;
};

using Depths = std::vector<std::uint32_t>;

Depths depths_of(const Campaign& campaign) {
  Depths depths;
  for (const RunResult& run : campaign.runs) {
    depths.push_back(run.setting.max_concurrent_messages);
  }
  return depths;
}

/// Expects that estimate number `i` is the median of `figure` of the runs.
template <class Figure>
void expect_estimate(const Campaign& campaign, std::size_t i, const std::string& name,
                     Figure figure) {
  ASSERT_LT(i, campaign.estimates.size());
  EXPECT_EQ(campaign.estimates[i].first, name);
  std::vector<double> values;
  values.reserve(campaign.runs.size());
  for (const RunResult& run : campaign.runs) values.push_back(figure(run));
  const metrics::Estimate expected = metrics::estimate_median(values);
  EXPECT_EQ(campaign.estimates[i].second.middle, expected.middle);
  EXPECT_EQ(campaign.estimates[i].second.low, expected.low);
  EXPECT_EQ(campaign.estimates[i].second.high, expected.high);
}

double rate_of(const RunResult& run) {
  return run.million_operations_per_second();
}

// 20 latencies are enough for a p95, but not for a p99.
TEST_F(CampaignTest, ThreeRepeatsHaveEstimates) {
  Options repeated = options();
  repeated.repeat = 3;
  const Campaign campaign = made(repeated);
  EXPECT_EQ(depths_of(campaign), (Depths{4, 4, 4}));
  EXPECT_FALSE(campaign.has_failed());
  EXPECT_FALSE(campaign.interrupted());
  expect_estimate(campaign, 0, "io_rate_miops", rate_of);
  std::size_t i = 1;
  for (const std::size_t statistic : {0U, 1U, 2U, 3U, 4U, 9U}) {  // up to p95, and max
    expect_estimate(
        campaign, i++, std::string("service_time_us.") + results::kStatisticNames[statistic],
        [&](const RunResult& run) { return run.total->service.summary()[statistic].second; });
  }
  EXPECT_EQ(campaign.estimates.size(), i);
}

TEST_F(CampaignTest, RepeatsOfAnOpenLoopHaveEstimatesOfItsResponseTime) {
  Options repeated = options();
  repeated.repeat = 4;
  repeated.rate = 1000;
  repeated.iteration_count = 8;
  repeated.lag_tolerance = kBound;
  const Campaign campaign = made(repeated);
  ASSERT_EQ(campaign.estimates.size(), 9U);  // the rate, and min, mean, p50, max of two latencies
  expect_estimate(campaign, 2, "response_time_us.min",
                  [](const RunResult& run) { return run.total->response.summary()[0].second; });
  EXPECT_EQ(campaign.estimates[7].first, "service_time_us.max");
  EXPECT_EQ(campaign.estimates[8].first, "response_time_us.max");
}

TEST_F(CampaignTest, TwoRepeatsTellNoInterval) {
  Options repeated = options();
  repeated.repeat = 2;
  const Campaign campaign = made(repeated);
  EXPECT_EQ(campaign.runs.size(), 2U);
  EXPECT_TRUE(campaign.estimates.empty());
}

TEST_F(CampaignTest, RepeatsOfAScanAlternate) {
  Options scanned = options();
  scanned.repeat = 2;
  scanned.scan = Scan{Scan::Of::depth, {1, 8, 3}};
  const Campaign campaign = made(scanned);
  EXPECT_EQ(depths_of(campaign), (Depths{1, 8, 3, 1, 8, 3}));
  EXPECT_FALSE(campaign.runs.front().setting.rate);
  EXPECT_TRUE(campaign.estimates.empty());
}

TEST_F(CampaignTest, AScanOfRatesKeepsTheDepth) {
  Options scanned = options();
  scanned.lag_tolerance = kBound;
  scanned.scan = Scan{Scan::Of::rate, {1000, 2000}};
  const Campaign campaign = made(scanned);
  EXPECT_EQ(depths_of(campaign), (Depths{4, 4}));
  EXPECT_EQ(campaign.runs[0].setting.rate, 1000);
  EXPECT_EQ(campaign.runs[1].setting.rate, 2000);
}

// No latency meets the bound. The first request of seed 0 is due at once, however low the rate is.
TEST_F(CampaignTest, ASearchMeasuresByItsPercentile) {
  Options searched = options();
  searched.duration = 40ms;
  searched.lag_tolerance = kBound;
  searched.search = Search{"p50", 0.5, 1ns};
  const Campaign campaign = made(searched);
  ASSERT_TRUE(campaign.search);
  EXPECT_TRUE(campaign.has_failed());
  EXPECT_FALSE(campaign.search->rate);
  const auto& steps = campaign.search->steps;
  ASSERT_EQ(steps.size(), campaign.runs.size());
  EXPECT_EQ(steps.front().offered_per_second, 1000);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const RunResult& run = campaign.runs[i];
    EXPECT_EQ(run.setting.rate, steps[i].offered_per_second);
    EXPECT_EQ(run.setting.max_concurrent_messages, 4U);
    const Measured& measured = steps[i].measured;
    EXPECT_EQ(measured.achieved_per_second, run.valid_per_second());
    EXPECT_EQ(measured.latency_us, core::to_micros(run.total->response.percentile(0.5)));
    EXPECT_EQ(measured.held, run.total->response.count() >= 2);
    EXPECT_FALSE(steps[i].meets);
  }
  EXPECT_EQ(campaign.search->end, SearchEnd::lowest_fails);
  EXPECT_EQ(steps.back().offered_per_second, 0.001);
  EXPECT_TRUE(steps.back().measured.trusted);
}

/// A run at 1000 requests a second that kept up: each took 400 us, of which 1 us was this client's.
RunResult a_good_run(std::uint64_t responses = 1000, core::Duration time = 400us,
                     core::Duration lag = 1us) {
  RunResult run;
  run.setting.rate = 1000;
  run.duration = 1s;
  run.total->due = 1000;
  run.total->valid = run.total->answered = responses;
  for (std::uint64_t i = 0; i < responses; ++i) {
    run.total->service.record(time);
    run.total->response.record(time);
    run.total->lag.record(lag);
  }
  return run;
}

Measured measured_by_p99(const RunResult& run) {
  return measured_by(run, {"p99", 0.99, 500us}, 1ms);
}

TEST(MeasuredBy, HasWhatTheSearchJudges) {
  const Measured good = measured_by_p99(a_good_run());
  EXPECT_EQ(good.achieved_per_second, 1000);
  EXPECT_NEAR(good.latency_us, 400, 1);
  EXPECT_TRUE(good.kept_up);
  EXPECT_TRUE(good.trusted);
  EXPECT_FALSE(good.too_few);
  EXPECT_TRUE(good.held);
}

TEST(MeasuredBy, AnErrorOrALateServerDidNotKeepUp) {
  const auto kept_up_with = [](const auto& change) {
    RunResult run = a_good_run();
    change(run);
    const Measured measured = measured_by_p99(run);
    EXPECT_TRUE(measured.trusted);
    return measured.kept_up;
  };
  EXPECT_FALSE(kept_up_with([](RunResult& run) { run.total->errors.add(ErrorKind::closed); }));
  EXPECT_FALSE(kept_up_with([](RunResult& run) { run.faults.emplace_back("it is gone"); }));
  EXPECT_FALSE(kept_up_with([](RunResult& run) { run.unanswered = 1; }));
  EXPECT_FALSE(kept_up_with([](RunResult& run) { run.total->held_back = 500; }));
  EXPECT_FALSE(
      kept_up_with([](RunResult& run) { run.verdict.code = LoadVerdict::Code::cut_short; }));
  EXPECT_TRUE(kept_up_with([](RunResult& run) {
    run.verdict.code = LoadVerdict::Code::too_few;  // by other rules
  }));
}

TEST(MeasuredBy, ALateClientIsNotTrusted) {
  RunResult late = a_good_run();
  late.total->noticed_late = 500;
  EXPECT_FALSE(measured_by_p99(late).trusted);
  EXPECT_FALSE(measured_by_p99(late).too_few);
  // Over the bound, and within it without this client's own time.
  EXPECT_FALSE(measured_by_p99(a_good_run(1000, 600us, 200us)).trusted);
  EXPECT_TRUE(measured_by_p99(a_good_run(1000, 600us, 50us)).trusted);
  EXPECT_TRUE(measured_by_p99(a_good_run(1000, 400us, 200us)).trusted);
}

TEST(MeasuredBy, AFewLatenciesExceedABoundButDoNotMeetIt) {
  const Measured within = measured_by_p99(a_good_run(50));
  EXPECT_FALSE(within.held);
  EXPECT_TRUE(within.too_few);
  EXPECT_FALSE(within.trusted);
  const Measured beyond = measured_by_p99(a_good_run(50, 600us));
  EXPECT_FALSE(beyond.held);
  EXPECT_FALSE(beyond.too_few);
  EXPECT_TRUE(beyond.trusted);
  RunResult none_due = a_good_run();
  none_due.total->due = 0;
  EXPECT_TRUE(measured_by_p99(none_due).too_few);
}

TEST_F(CampaignTest, ASearchEndsWhereTooFewRequestsAreDue) {
  Options searched = options();
  searched.rate = 50;
  searched.duration = 40ms;
  searched.seed = 1;  // the first request is due after 0.6 of the time between two
  searched.lag_tolerance = kBound;
  searched.search = Search{"p50", 0.5, 1ns};
  const Campaign campaign = made(searched);
  EXPECT_EQ(campaign.search->end, SearchEnd::too_few);
  EXPECT_EQ(campaign.search->steps.front().offered_per_second, 50);
  const Measured& last = campaign.search->steps.back().measured;
  EXPECT_TRUE(last.too_few);
  EXPECT_FALSE(last.trusted);
  EXPECT_FALSE(last.held);
}

class CampaignOfAWrongServer : public CampaignTest {
 protected:
  CampaignOfAWrongServer() : CampaignTest(25) {}  // in the second run
};

TEST_F(CampaignOfAWrongServer, AnErrorEndsTheRepeats) {
  Options repeated = options();
  repeated.repeat = 4;
  const Campaign campaign = made(repeated);
  EXPECT_EQ(campaign.runs.size(), 2U);
  EXPECT_TRUE(campaign.has_failed());
  EXPECT_TRUE(campaign.estimates.empty());
}

TEST_F(CampaignOfAWrongServer, ACountedErrorDoesNot) {
  Options repeated = options();
  repeated.repeat = 4;
  repeated.count_errors = true;
  const Campaign campaign = made(repeated);
  EXPECT_EQ(campaign.runs.size(), 4U);
  EXPECT_TRUE(campaign.has_failed());
  EXPECT_FALSE(campaign.estimates.empty());
}

TEST_F(CampaignTest, AWrongAnswerEndsASearch) {
  const ReversingServer wrong(0);
  Options searched = options_for_port(wrong.port());
  searched.rate = 700;
  searched.duration = 100ms;
  searched.lag_tolerance = kBound;
  searched.count_errors = true;
  searched.search = Search{"p50", 0.5, 1s};
  const Campaign campaign = made(searched);
  ASSERT_EQ(campaign.runs.size(), 1U);
  EXPECT_EQ(campaign.runs[0].setting.rate, 700);
  EXPECT_EQ(campaign.search->end, SearchEnd::interrupted);
  EXPECT_TRUE(campaign.has_failed());
}

/// Interrupts repeats in this process, which ends with status 0 if that ended them.
[[noreturn]] void interrupt_repeats(bool count_errors) {
  core::Signals signals;
  const ReversingServer server;
  Options options = options_for_port(server.port());
  options.iteration_count = 1'000'000'000'000;
  options.repeat = 3;
  options.count_errors = count_errors;
  RunObserver observer;
  observer.on_start = [] { ::kill(::getpid(), SIGTERM); };
  const Campaign campaign = campaign_of(options, signals, observer);
  std::_Exit(campaign.runs.size() == 1 && campaign.interrupted() && !campaign.has_failed() &&
                     campaign.estimates.empty()
                 ? 0
                 : 1);
}

TEST(CampaignDeathTest, ASignalEndsTheRepeats) {
  EXPECT_EXIT(interrupt_repeats(false), testing::ExitedWithCode(0), "");
}

TEST(CampaignDeathTest, ASignalEndsTheRepeatsAlsoIfErrorsAreCounted) {
  EXPECT_EXIT(interrupt_repeats(true), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::client
