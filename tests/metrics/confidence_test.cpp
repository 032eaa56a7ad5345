#include "metrics/confidence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace offload::metrics {
namespace {

using Values = std::vector<double>;
using Pairs = std::vector<RepeatPair>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Confidence, TheMiddleIsTheMedian) {
  EXPECT_EQ(estimate_median(Values{5}).middle, 5);
  EXPECT_EQ(estimate_median(Values{9, 1}).middle, 5);
  EXPECT_EQ(estimate_median(Values{9, 1, 2}).middle, 2);
  EXPECT_EQ(estimate_median(Values{7, 1, 5, 3}).middle, 4);
  EXPECT_EQ(estimate_median(Values{8, 1, 6, 3, 2, 9, 4}).middle, 4);
}

TEST(Confidence, FewerThanThreeTellNothing) {
  for (const Values& values : {Values{}, Values{5}, Values{5, 6}}) {
    EXPECT_EQ(estimate_median(values).low, -kInfinity);
    EXPECT_EQ(estimate_median(values).high, kInfinity);
  }
  for (const Pairs& pairs : {Pairs{}, Pairs{{1, 1}}, Pairs{{1, 1}, {1, 1}}}) {
    EXPECT_EQ(estimate_ratio(pairs).low, 0);
    EXPECT_EQ(estimate_ratio(pairs).middle, 1);
    EXPECT_EQ(estimate_ratio(pairs).high, kInfinity);
  }
}

/// The intervals of the order statistics are in the tables of textbooks.
TEST(Confidence, FromSixOnTheIntervalLiesBetweenTwoValues) {
  const std::vector<std::pair<int, int>> lowest_rank = {{6, 1},   {8, 1},   {9, 2},   {11, 2},
                                                        {12, 3},  {15, 4},  {20, 6},  {25, 8},
                                                        {30, 10}, {50, 18}, {100, 40}};
  for (const auto& [count, rank] : lowest_rank) {
    Values values;
    for (int i = count; i >= 1; --i) values.push_back(i);
    const Estimate estimate = estimate_median(values);
    EXPECT_EQ(estimate.low, rank) << count;
    EXPECT_EQ(estimate.high, count + 1 - rank) << count;
    EXPECT_EQ(estimate.middle, (count + 1) / 2.0) << count;
  }
}

TEST(Confidence, ThreeToFiveHaveStudentsInterval) {
  const Estimate logs = estimate_median(Values{1, std::exp(1.0), std::exp(2.0)});
  EXPECT_NEAR(std::log(logs.low), 1 - 4.30265 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(std::log(logs.high), 1 + 4.30265 / std::sqrt(3.0), 1e-9);
  const Estimate plain = estimate_median(Values{-1, 0, 1});
  EXPECT_NEAR(plain.high, 4.30265 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(plain.middle, 0);
}

TEST(Confidence, ARatioHasTheSameRanks) {
  Pairs pairs;
  for (int i = 10; i >= 1; --i) pairs.push_back({2, 2.0 * i});
  const Estimate estimate = estimate_ratio(pairs);
  EXPECT_NEAR(estimate.low, 2, 1e-9);
  EXPECT_NEAR(estimate.middle, std::sqrt(5.0 * 6.0), 1e-9);
  EXPECT_NEAR(estimate.high, 9, 1e-9);
  const Estimate few = estimate_ratio(Pairs{{1, 1}, {2, 2 * std::exp(1.0)}, {3, 3 * std::exp(2)}});
  EXPECT_NEAR(std::log(few.middle), 1, 1e-9);
  EXPECT_NEAR(std::log(few.low), 1 - 4.30265 / std::sqrt(3.0), 1e-9);
}

TEST(Confidence, AnOutlierDoesNotWidenARatio) {
  Pairs pairs;
  for (int i = 0; i < 10; ++i) pairs.push_back({100.0 + i, 1.1 * (100 + i) * (1 + 0.001 * i)});
  pairs[4].compared *= 10;
  const Estimate estimate = estimate_ratio(pairs);
  EXPECT_NEAR(estimate.middle, 1.1, 0.011);
  EXPECT_GT(estimate.low, 1.09);
  EXPECT_LT(estimate.high, 1.13);
}

TEST(Confidence, ManyPairsHaveANarrowInterval) {
  Pairs pairs;
  for (int i = 1; i <= 10'001; ++i) pairs.push_back({1, static_cast<double>(i)});
  const Estimate estimate = estimate_ratio(pairs);
  EXPECT_NEAR(estimate.middle, 5001, 1e-6);
  EXPECT_NEAR(estimate.low, 5001 - 98, 2);  // the normal distribution's 1.96 / 2 * sqrt(n)
  EXPECT_NEAR(estimate.high, 5001 + 98, 2);
}

TEST(Confidence, TheMiddleIsInTheIntervalOfEqualValues) {
  for (std::size_t count = 3; count <= 20; ++count) {
    for (const double value : {0.1, 1.0 / 3, 12345.678}) {
      const Estimate estimate = estimate_median(Values(count, value));
      EXPECT_LE(estimate.low, value);
      EXPECT_EQ(estimate.middle, value);
      EXPECT_GE(estimate.high, value);
      EXPECT_NEAR(estimate.low, estimate.high, value * 1e-9);
    }
  }
}

TEST(Confidence, EqualPairsHaveTheRatioOne) {
  for (std::size_t count = 3; count <= 20; ++count) {
    const Estimate estimate = estimate_ratio(Pairs(count, RepeatPair{7, 7}));
    EXPECT_EQ(estimate.low, 1);
    EXPECT_EQ(estimate.middle, 1);
    EXPECT_EQ(estimate.high, 1);
  }
}

TEST(Confidence, ARatioNeedsPositiveValues) {
  for (const double wrong : {0.0, -1.0, kInfinity, std::nan("")}) {
    EXPECT_THROW(estimate_ratio(Pairs{{1, 1}, {1, wrong}, {1, 1}}), core::Error) << wrong;
    EXPECT_THROW(estimate_ratio(Pairs{{1, 1}, {wrong, 1}, {1, 1}}), core::Error) << wrong;
  }
}

using Random = std::mt19937_64;
struct Noise {
  std::string name;
  std::function<double(Random&)> value;
  double median;
  double nominal;  ///< the least coverage of medians of 3 to 5
};

double normal(Random& random) {
  return std::normal_distribution<double>()(random);
}
double exponential(Random& random) {
  return std::exponential_distribution<double>()(random);
}

/// Noise as repeats of a benchmark have it: even, skewed, and skewed with a sharp lower bound, for
/// which logarithms of few values are not quite normal.
std::vector<Noise> noises() {
  return {{"normal", [](Random& random) { return 1 + 0.03 * normal(random); }, 1, 0.94},
          {"log-normal", [](Random& random) { return std::exp(normal(random)); }, 1, 0.94},
          {"bounded", [](Random& random) { return 1 + 0.1 * exponential(random); },
           1 + 0.1 * std::log(2.0), 0.92}};
}

constexpr int kTrials = 4000;  // the standard error of a coverage of 0.95 is 0.0034

bool has(const Estimate& estimate, double value) {
  return estimate.low <= value && value <= estimate.high;
}

TEST(Confidence, TheMedianIsInItsIntervalNineteenTimesOfTwenty) {
  for (const Noise& noise : noises()) {
    for (const std::size_t count : {3U, 4U, 5U, 6U, 9U, 12U, 20U}) {
      Random random(count);
      int covered = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        Values values(count);
        for (double& value : values) value = noise.value(random);
        covered += has(estimate_median(values), noise.median) ? 1 : 0;
      }
      EXPECT_GE(covered, (count < 6 ? noise.nominal : 0.94) * kTrials) << noise.name << count;
      EXPECT_LT(covered, kTrials) << "an interval of everything would be no use";
    }
  }
}

TEST(Confidence, TheRatioIsInItsIntervalThoughTheMachineDrifts) {
  for (const Noise& noise : noises()) {
    for (const std::size_t count : {3U, 4U, 5U, 6U, 7U, 10U, 20U}) {
      Random random(count);
      int covered = 0;
      int found = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        Pairs pairs(count);
        double speed = 1;
        for (RepeatPair& pair : pairs) {
          speed *= 1 + 0.02 * normal(random);
          pair = {speed * noise.value(random), 1.2 * speed * noise.value(random)};
        }
        const Estimate estimate = estimate_ratio(pairs);
        covered += has(estimate, 1.2) ? 1 : 0;
        found += has(estimate, 1) ? 0 : 1;
      }
      EXPECT_GE(covered, 0.94 * kTrials) << noise.name << count;
      if (noise.name == "normal" && count >= 10) {
        EXPECT_GE(found, 0.99 * kTrials) << "a difference of 20 % at 3 % of noise shows";
      }
    }
  }
}

}  // namespace
}  // namespace offload::metrics
