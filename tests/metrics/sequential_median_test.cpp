#include "metrics/sequential_median.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace offload::metrics {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kWrongShare = 0.05;
constexpr int kComparisons = 2000;
constexpr int kMostPairs = 300;

using NoiseSource = std::mt19937_64;
/// The logarithms of the ratios of one comparison, one after the other.
using LogRatios = std::function<double()>;

double normal_value(NoiseSource& random) {
  return std::normal_distribution<double>()(random);
}

/// Returns in how many trials the interval excluded `median` at any look.
int wrong_trials(const std::function<LogRatios(NoiseSource&)>& make_noise, double median) {
  int wrong = 0;
  for (int trial = 0; trial < kComparisons; ++trial) {
    NoiseSource random(static_cast<std::uint64_t>(trial));
    const LogRatios noise = make_noise(random);
    SequentialMedian sequence(kWrongShare);
    bool is_wrong = false;
    for (int i = 0; i < kMostPairs && !is_wrong; ++i) {
      sequence.add(median + noise());
      const Estimate estimate = sequence.estimate();
      is_wrong = estimate.low > median || estimate.high < median;
    }
    wrong += is_wrong ? 1 : 0;
  }
  return wrong;
}

constexpr int kMostWrong = static_cast<int>(kWrongShare * kComparisons);

TEST(SequentialMedian, FewValuesTellNothing) {
  SequentialMedian sequence(kWrongShare);
  EXPECT_EQ(sequence.estimate().low, -kUnbounded);
  for (int i = 1; i <= 4; ++i) {
    sequence.add(i);
    EXPECT_EQ(sequence.estimate().low, -kUnbounded) << i;
    EXPECT_EQ(sequence.estimate().high, kUnbounded) << i;
  }
  EXPECT_EQ(sequence.count(), 4U);
  EXPECT_EQ(sequence.estimate().middle, 2.5);
}

TEST(SequentialMedian, TheIntervalLiesBetweenTwoValuesAroundTheMedian) {
  SequentialMedian sequence(kWrongShare);
  for (int i = 0; i < 401; ++i) sequence.add((i * 193) % 401);
  const Estimate estimate = sequence.estimate();
  EXPECT_EQ(estimate.middle, 200);
  EXPECT_EQ(estimate.low + estimate.high, 400);
  // The bound of a single look, which must not be narrower, is 180 to 220.
  EXPECT_GT(estimate.low, 150);
  EXPECT_LT(estimate.low, 180);
}

/// All values on one side of 0: how many it takes until 0 is excluded.
TEST(SequentialMedian, AClearDifferenceIsFoundSoon) {
  SequentialMedian sequence(kWrongShare);
  while (sequence.estimate().low < 0) sequence.add(1);
  EXPECT_GE(sequence.count(), 6U);
  EXPECT_LE(sequence.count(), 16U);
}

TEST(SequentialMedian, LookingAtEachPairFindsNoDifferenceOfEqualsInNormalNoise) {
  const auto noise = [](NoiseSource& random) { return [&random] { return normal_value(random); }; };
  EXPECT_LE(wrong_trials(noise, 0), kMostWrong);
}

TEST(SequentialMedian, NorInNoiseWithHeavyTails) {
  const auto noise = [](NoiseSource& random) {
    return [&random] { return normal_value(random) / normal_value(random); };
  };
  EXPECT_LE(wrong_trials(noise, 0), kMostWrong);
}

/// A machine that is disturbed for a while, which makes the first of a pair slower: the order is
/// drawn for each pair.
TEST(SequentialMedian, NorInNoiseThatDependsOnWhatWasBefore) {
  const auto noise = [](NoiseSource& random) {
    return [&random, drift = 0.0]() mutable {
      drift = 0.95 * drift + normal_value(random);
      return (random() % 2 == 0 ? 1 : -1) * (0.5 + std::exp(drift));
    };
  };
  EXPECT_LE(wrong_trials(noise, 0), kMostWrong);
}

TEST(SequentialMedian, NorAmongValuesThatAreOftenEqual) {
  const auto noise = [](NoiseSource& random) {
    return [&random] { return static_cast<double>(random() % 3) - 1; };
  };
  EXPECT_LE(wrong_trials(noise, 0), kMostWrong);
}

TEST(SequentialMedian, TheIntervalHasTheTrueDifference) {
  const auto noise = [](NoiseSource& random) {
    return [&random, level = 0.0]() mutable {
      level = 0.9 * level + normal_value(random);
      return std::exp(level / 3) * (random() % 2 == 0 ? 1 : -1);
    };
  };
  EXPECT_LE(wrong_trials(noise, 0.03), kMostWrong);
}

/// Why the interval of a fixed number of values must not be looked at after each.
TEST(SequentialMedian, TheIntervalOfASingleLookWouldFindDifferencesOfEquals) {
  int wrong = 0;
  for (int trial = 0; trial < 200; ++trial) {
    NoiseSource random(static_cast<std::uint64_t>(trial));
    std::vector<double> values;
    bool is_wrong = false;
    for (int i = 0; i < kMostPairs && !is_wrong; ++i) {
      values.push_back(normal_value(random));
      const Estimate estimate = estimate_median(values);
      is_wrong = estimate.low > 0 || estimate.high < 0;
    }
    wrong += is_wrong ? 1 : 0;
  }
  EXPECT_GT(wrong, 40);
}

}  // namespace
}  // namespace offload::metrics
