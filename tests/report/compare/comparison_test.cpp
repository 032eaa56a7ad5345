#include "apps/report/compare/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

/// A machine whose runs are measured one after the other, with noise of each and a drift of all.
struct Machine {
  std::mt19937_64 random;
  double noise = 0.03;      ///< standard deviation of the logarithm, run by run
  double drift = 0.01;      ///< the same of a step of its speed's random walk
  double trend = 0.002;     ///< it grows slower by this each run
  double disturbed = 0.02;  ///< share of runs that something else made slower, up to threefold
  double level = 0;

  report::Run run(double slowness, double begun_s) {
    std::normal_distribution<> normal;
    std::uniform_real_distribution<> uniform;
    level += trend + drift * normal(random);
    double factor = slowness * std::exp(level + noise * normal(random));
    if (uniform(random) < disturbed) factor *= 1 + 2 * uniform(random);
    report::Run run;
    run.started_at_unix_s = begun_s;
    run.duration_seconds = 5;
    run.io_rate_miops = 0.25 / factor;
    for (double& us : run.service_time_us.us) us = 100 * factor;
    run.service_time_us.count = 100'000;
    return run;
  }
};

enum class Order : std::uint8_t { alternated, one_after_the_other };

Comparison measure(Machine& machine, std::size_t pairs, double slowness,
                   Order order = Order::alternated) {
  std::vector<report::Run> base(pairs);
  std::vector<report::Run> candidate(pairs);
  for (std::size_t i = 0; i < 2 * pairs; ++i) {
    const bool is_base = order == Order::alternated ? i % 2 == 0 : i < pairs;
    const std::size_t at = order == Order::alternated ? i / 2 : i % pairs;
    (is_base ? base : candidate)[at] =
        machine.run(is_base ? 1 : slowness, 10 * static_cast<double>(i));
  }
  std::vector<const report::Run*> left;
  std::vector<const report::Run*> right;
  for (std::size_t i = 0; i < pairs; ++i) {
    left.push_back(&base[i]);
    right.push_back(&candidate[i]);
  }
  return compare(left, right);
}

Judgement judge_of(const Comparison& comparison, const std::string& expression) {
  const Threshold threshold = *parse_threshold(expression);
  for (const Ratio& ratio : comparison.ratios) {
    if (ratio.figure == threshold.figure) return judge(threshold, ratio);
  }
  ADD_FAILURE() << expression;
  return Judgement::noisy;
}

/// How many of 1,000 comparisons come to each judgement.
std::map<Judgement, int> judgements(std::size_t pairs, double slowness, const char* expression,
                                    Machine settings = {}, Order order = Order::alternated) {
  std::map<Judgement, int> counts;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    Machine machine = settings;
    machine.random.seed(seed);
    ++counts[judge_of(measure(machine, pairs, slowness, order), expression)];
  }
  return counts;
}

TEST(Comparison, EqualPairsRaiseNoAlarm) {
  for (const std::size_t pairs : {3U, 5U, 10U, 20U}) {
    for (const char* const expression : {"p99>1.05", "p99>1.1", "p99>1.2", "rate<0.9"}) {
      auto counts = judgements(pairs, 1, expression);
      EXPECT_LT(counts[Judgement::exceeded], 10) << pairs << " pairs, " << expression;
    }
  }
}

TEST(Comparison, EqualPairsOfAVeryNoisyMachineRaiseNoAlarm) {
  Machine noisy;
  noisy.noise = 0.3;
  for (const std::size_t pairs : {3U, 5U, 10U}) {
    auto counts = judgements(pairs, 1, "p99>1.1", noisy);
    EXPECT_LT(counts[Judgement::exceeded], 10) << pairs << " pairs";
    EXPECT_GT(counts[Judgement::noisy], 900) << pairs << " pairs";
  }
}

TEST(Comparison, ASlowDownIsCaught) {
  Machine undisturbed;
  undisturbed.disturbed = 0;
  auto counts = judgements(10, 1.2, "p99>1.1", undisturbed);
  EXPECT_GT(counts[Judgement::exceeded], 950);
  EXPECT_EQ(counts[Judgement::not_exceeded], 0);
  counts = judgements(10, 1.2, "rate<0.9", undisturbed);
  EXPECT_GT(counts[Judgement::exceeded], 900) << "1/1.2 is nearer to 0.9 than 1.2 to 1.1";
  // A run that something else made twice as slow may leave it untold, and hides nothing.
  counts = judgements(10, 1.2, "p99>1.1");
  EXPECT_GT(counts[Judgement::exceeded], 900);
  EXPECT_LT(counts[Judgement::not_exceeded], 5);
}

TEST(Comparison, ADriftBetweenTheTwoIsNoise) {
  Machine drifting;
  drifting.trend = 0.01;  // 10 % in ten runs
  for (const std::size_t pairs : {5U, 10U}) {
    auto counts = judgements(pairs, 1, "p99>1.1", drifting, Order::one_after_the_other);
    EXPECT_LT(counts[Judgement::exceeded], 10) << pairs << " pairs";
  }
  Machine machine = drifting;
  const auto comparison = measure(machine, 10, 1, Order::one_after_the_other);
  EXPECT_FALSE(comparison.alternated);
  EXPECT_GE(comparison.ratios.front().noise, comparison.ratios.front().base_range);
}

Ratio p99_of(const Comparison& comparison) {
  for (const Ratio& ratio : comparison.ratios) {
    if (ratio.label == "service p99 (us)") return ratio;
  }
  ADD_FAILURE();
  return {};
}

TEST(Comparison, SaysAboutHowManyRepeatsWouldDo) {
  const Threshold threshold = *parse_threshold("p99>1.02");
  int noisy = 0;
  int enough = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Machine machine;
    machine.disturbed = 0;
    machine.random.seed(seed);
    const Ratio ratio = p99_of(measure(machine, 10, 1));
    if (judge(threshold, ratio) != Judgement::noisy) continue;  // ten calm ones
    ++noisy;
    const auto needed = pairs_needed(threshold, ratio, 10);
    ASSERT_TRUE(needed);
    EXPECT_GT(*needed, 10U);
    EXPECT_LT(*needed, 200U);
    // The noise of ten pairs is known within a third or so, and their number goes by its square.
    const Ratio larger = p99_of(measure(machine, 2 * *needed, 1));
    enough += judge(threshold, larger) != Judgement::noisy ? 1 : 0;
  }
  EXPECT_GT(noisy, 80);
  EXPECT_GT(enough, noisy * 8 / 10);
}

TEST(Comparison, SomeBoundsNoNumberOfRepeatsReaches) {
  Machine machine;
  const auto comparison = measure(machine, 10, 1);
  EXPECT_FALSE(pairs_needed(*parse_threshold("p99>1.001"), p99_of(comparison), 10))
      << "finer than a histogram's buckets";
  EXPECT_FALSE(pairs_needed(*parse_threshold("rate>1"), comparison.ratios.front(), 10));
}

TEST(Comparison, AnIntervalAroundTheBoundIsUndecided) {
  Ratio ratio;
  ratio.estimate = {1.25, 1.1, 1.42};
  ratio.noise = 0.13;
  EXPECT_EQ(judge(*parse_threshold("p99>1.2"), ratio), Judgement::undecided);
  EXPECT_EQ(judge(*parse_threshold("p99>1.3"), ratio), Judgement::not_exceeded);
  EXPECT_EQ(judge(*parse_threshold("p99>1.05"), ratio), Judgement::exceeded);
  EXPECT_EQ(judge(*parse_threshold("p99>1.12"), ratio), Judgement::noisy);
  EXPECT_EQ(judge(*parse_threshold("p99<0.8"), ratio), Judgement::not_exceeded);
  EXPECT_EQ(judge(*parse_threshold("p99<1.5"), ratio), Judgement::exceeded);
}

/// A ratio at a bound is not beyond it, nor is a distance of exactly the noise larger than that.
TEST(Comparison, AtABoundNothingIsExceeded) {
  const auto judged = [](const char* expression, const metrics::Estimate& estimate, double noise) {
    Ratio ratio;
    ratio.estimate = estimate;
    ratio.noise = noise;
    return judge(*parse_threshold(expression), ratio);
  };
  EXPECT_EQ(judged("p99>1.2", {1.5, 1.2, 1.8}, 0.13), Judgement::undecided);
  EXPECT_EQ(judged("p99<0.8", {0.7, 0.6, 0.8}, 0.13), Judgement::undecided);
  EXPECT_EQ(judged("p99>1.2", {1.2, 1.1, 1.3}, 0.13), Judgement::not_exceeded);
  EXPECT_EQ(judged("p99<0.8", {0.8, 0.7, 0.9}, 0.13), Judgement::not_exceeded);
  EXPECT_EQ(judged("p99>1", {1, 1, 1}, 0), Judgement::noisy);
  // 4 is twice as far from 1 as a noise of 100 %, on a logarithmic scale.
  EXPECT_EQ(judged("p99>4", {5, 3, 8}, 1), Judgement::undecided);
  EXPECT_EQ(judged("p99>4", {5, 3, 8}, 0.99), Judgement::exceeded);
}

/// 3 pairs with an interval of 10 % to each side: t of 2 degrees is 4.171, so the deviation is
/// ln(1.1) * sqrt(3) / 4.171 = 0.0396. The bound is ln(1.1 / 1.05) = 0.0465 away. 5 pairs have
/// 2.769 * 0.0396 / sqrt(5) = 0.0490, 6 have 2.568 * 0.0396 / sqrt(6) = 0.0415.
TEST(Comparison, TheRepeatsNeededFollowFromStudentsQuantile) {
  Ratio ratio;
  ratio.figure = {Figure::Kind::rate};
  ratio.estimate = {1.1, 1, 1.2};
  ratio.noise = 0.01;
  const auto needed = [&](double noise, std::size_t pairs) {
    ratio.interval_noise = noise;
    return pairs_needed(*parse_threshold("rate>1.05"), ratio, pairs);
  };
  EXPECT_EQ(needed(0.1, 3), 6U);
  EXPECT_EQ(needed(0.2, 3), 13U);
  EXPECT_EQ(needed(0.2, 5), 41U);
}

TEST(Comparison, TenThousandRepeatsAreTheMostThatItSays) {
  Ratio ratio;
  ratio.figure = {Figure::Kind::rate};
  ratio.estimate = {1, 0.9, 1.1};
  ratio.noise = 11;
  // At this noise 10,000 repeats are the fewest for 1.02; at the next one, 10,001 would be.
  ratio.interval_noise = 10.391;
  EXPECT_EQ(pairs_needed(*parse_threshold("rate>1.02"), ratio, 3), 10'000U);
  ratio.interval_noise = 10.392;
  EXPECT_FALSE(pairs_needed(*parse_threshold("rate>1.02"), ratio, 3));
}

TEST(Comparison, EqualNumbersAreAsNoisyAsABucketIsWide) {
  Machine machine;
  machine.noise = machine.drift = machine.trend = machine.disturbed = 0;
  const auto comparison = measure(machine, 5, 1);
  EXPECT_EQ(judge_of(comparison, "p99>1.005"), Judgement::noisy);
  EXPECT_EQ(judge_of(comparison, "p99>1.01"), Judgement::not_exceeded);
}

TEST(Comparison, TooFewPairsTellNothing) {
  Machine machine;
  EXPECT_TRUE(measure(machine, 2, 1).ratios.empty());
  EXPECT_EQ(compare({}, {}).pairs, 0U);
}

TEST(Comparison, PairsAreAlternatedIfNoneBeginsBeforeTheEndOfTheOneBefore) {
  const auto is_alternated = [](std::vector<double> base, std::vector<double> candidate) {
    std::vector<report::Run> runs(6);
    std::vector<const report::Run*> sides[2];
    for (std::size_t i = 0; i < 6; ++i) {
      runs[i].started_at_unix_s = (i < 3 ? base : candidate)[i % 3];
      runs[i].duration_seconds = 5;
      sides[i / 3].push_back(&runs[i]);
    }
    return compare(sides[0], sides[1]).alternated;
  };
  EXPECT_TRUE(is_alternated({0, 20, 40}, {10, 30, 50}));
  EXPECT_TRUE(is_alternated({0, 30, 40}, {10, 20, 50})) << "either may be the first of a pair";
  EXPECT_TRUE(is_alternated({0, 10, 20}, {5, 15, 25})) << "without a pause";
  EXPECT_FALSE(is_alternated({0, 10, 20}, {30, 40, 50}));
  EXPECT_FALSE(is_alternated({30, 40, 50}, {0, 10, 20}));
  EXPECT_FALSE(is_alternated({0, 20, 40}, {10, 30, 34})) << "the last one begins too early";
}

TEST(Comparison, RunsWithoutCounterpartAreLeftOut) {
  const report::Run run = sample_run();
  const auto comparison = compare({&run, &run, &run, &run}, {&run, &run, &run});
  EXPECT_EQ(comparison.pairs, 3U);
  EXPECT_EQ(comparison.unpaired, 1U);
}

TEST(Comparison, LoadsHaveToBeAlike) {
  const report::Run closed = sample_run();
  report::Run open = open_loop_run();
  EXPECT_NE(compare({&closed}, {&open}).unlike, "");
  report::Run faster = open;
  faster.offered_per_second = 3;
  EXPECT_EQ(compare({&open}, {&faster}).unlike,
            "run 1 of BASE is an open loop of 2/s, that of NEW an open loop of 3/s");
  EXPECT_EQ(compare({&open}, {&open}).unlike, "");
  open.offered_per_second = 2000;
  faster.offered_per_second = 2001.9;
  EXPECT_EQ(compare({&open}, {&faster}).unlike, "") << "the same within 0.1 %";
  faster.offered_per_second = 2002.1;
  EXPECT_NE(compare({&open}, {&faster}).unlike, "");
  report::Run deeper = closed;
  deeper.max_concurrent_messages = 32;
  EXPECT_EQ(compare({&closed}, {&deeper}).unlike,
            "run 1 of BASE is a closed loop of 2 connections with 16 in flight, that of NEW a "
            "closed loop of 2 connections with 32 in flight");
}

TEST(Comparison, ResponseTimesCountWhereBothHaveThem) {
  const report::Run open = open_loop_run();
  report::Run without = open;
  without.response_time_us.reset();
  EXPECT_EQ(compare({&open, &open, &open}, {&open, &open, &open}).ratios.at(1).label,
            "response mean (us)");
  EXPECT_EQ(compare({&open, &open, &open}, {&open, &without, &open}).ratios.at(1).label,
            "service mean (us)");
}

TEST(Comparison, AFigureThatIsZeroHasNoRatio) {
  const report::Run run = sample_run();
  report::Run idle = run;
  idle.io_rate_miops = 0;
  const auto ratios = compare({&run, &run, &run}, {&run, &idle, &run}).ratios;
  EXPECT_EQ(ratios.front().label, "service mean (us)");
}

}  // namespace
}  // namespace offload::report
