#include "apps/client/requests/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace offload::client {
namespace {

using namespace std::chrono_literals;

std::vector<double> times_of(Arrivals arrivals, std::size_t count) {
  std::vector<double> times;
  for (; times.size() < count; arrivals.advance())
    times.push_back(core::to_seconds(arrivals.next()));
  return times;
}

TEST(Arrivals, ConstantGapsDoNotAddUpTheirRounding) {
  auto arrivals = Arrivals::constant(3, 0.1);  // gaps of a third of a second
  EXPECT_EQ(arrivals.next(), 100ms);
  for (int i = 0; i < 3'000'000; ++i) arrivals.advance();
  EXPECT_NEAR(core::to_seconds(arrivals.next()), 1'000'000.1, 1e-6);
}

/// The largest distance between the distribution of the gaps and the exponential one
/// (Kolmogorov-Smirnov).
double distance_from_exponential(std::vector<double> times, double per_second) {
  for (std::size_t i = times.size() - 1; i > 0; --i) times[i] -= times[i - 1];
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  double distance = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double expected = 1 - std::exp(-per_second * times[i]);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / count),
                         std::abs(static_cast<double>(i + 1) / count - expected)});
  }
  return distance;
}

TEST(Arrivals, PoissonGapsAreExponential) {
  constexpr std::size_t kCount = 100'000;
  // The distance exceeds this value with a probability of 1 %; the seeds are fixed.
  const double critical = 1.628 / std::sqrt(static_cast<double>(kCount));
  for (const double rate : {1e3, 100e3}) {
    EXPECT_LT(distance_from_exponential(times_of(Arrivals::poisson(rate, 7), kCount), rate),
              critical);
  }
  // The test can tell: constant gaps, and a rate that is 2 % off.
  EXPECT_GT(distance_from_exponential(times_of(Arrivals::constant(1e3, 0), kCount), 1e3), critical);
  EXPECT_GT(distance_from_exponential(times_of(Arrivals::poisson(1.02e3, 7), kCount), 1e3),
            critical);
}

// Several threads have a part of the rate each; together they are a Poisson process again.
TEST(Arrivals, PoissonThreadsTogetherAreExponentialToo) {
  std::vector<double> all;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto times = times_of(Arrivals::poisson(250, seed), 25'000);
    all.insert(all.end(), times.begin(), times.end());
  }
  std::sort(all.begin(), all.end());
  all.resize(90'000);  // before the first thread's end
  EXPECT_LT(distance_from_exponential(all, 1e3), 1.628 / std::sqrt(90'000.0));
}

TEST(Arrivals, ACopyHasTheSameTimes) {
  auto one = Arrivals::poisson(10, 3);
  one.advance();
  EXPECT_EQ(times_of(one, 100), times_of(Arrivals(one), 100));
}

TEST(Arrivals, AReplayTakesEachStep) {
  const std::vector<ScheduledRequest> schedule = {{0s, 0}, {1s, 1}, {1s, 2}, {5s, 0}, {6s, 1}};
  auto first = Arrivals::replay(schedule, 0, 2);
  EXPECT_TRUE(first.has_sizes());
  EXPECT_EQ(first.next(), 0s);
  first.advance();
  EXPECT_EQ(first.next(), 1s);
  EXPECT_EQ(first.size_class(), 2U);
  first.advance();
  EXPECT_EQ(first.next(), 6s);
  first.advance();
  EXPECT_EQ(first.next(), core::Duration::max());
  first.advance();
  EXPECT_EQ(first.next(), core::Duration::max());
  EXPECT_EQ(Arrivals::replay(schedule, 1, 2).next(), 1s);
  EXPECT_EQ(Arrivals::replay(schedule, 7, 8).next(), core::Duration::max());
}

TEST(Arrivals, BurstsAreAtOnceOverAllThreads) {
  std::vector<double> all;
  for (std::uint64_t number = 0; number < 3; ++number) {
    // 10 a second, 4 at once: a burst each 0.4 s.
    const auto times = times_of(Arrivals::bursts(10, 0.1, 4, number, 3), 8);
    all.insert(all.end(), times.begin(), times.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t burst = i / 4;
    EXPECT_NEAR(all[i], 0.1 + 0.4 * static_cast<double>(burst), 1e-9) << i;
  }
}

TEST(Arrivals, StepsOfTheRate) {
  const std::vector<RateStep> steps{{10, 1s}, {100, 500ms}, {20, 1s}};
  const auto times = times_of(Arrivals::in_steps(Arrivals::constant(1, 0), steps, 1, 0s), 80);
  EXPECT_NEAR(times[9], 0.9, 1e-9);
  EXPECT_NEAR(times[10], 1, 1e-9);
  EXPECT_NEAR(times[11], 1.01, 1e-9);
  EXPECT_NEAR(times[60], 1.5, 1e-9);
  EXPECT_NEAR(times[61], 1.55, 1e-9);
  EXPECT_NEAR(times[79], 2.45, 1e-9);
  // The first step lasts for the warm-up, too; a share of the rate has as long steps.
  const auto later = times_of(Arrivals::in_steps(Arrivals::constant(1, 0), steps, 0.5, 1s), 40);
  EXPECT_NEAR(later[1], 0.2, 1e-9);
  EXPECT_NEAR(later[10], 2, 1e-9);
  EXPECT_NEAR(later[11], 2.02, 1e-9);
}

TEST(Arrivals, TheLastStepOfTheRateGoesOn) {
  const std::vector<RateStep> steps{{10, 1s}, {20, 1s}, {1000, 1s}};
  const auto times =
      times_of(Arrivals::in_steps(Arrivals::constant(1, 0), std::span(steps).first(2), 1, 0s), 71);
  EXPECT_NEAR(times[30], 2, 1e-9);
  EXPECT_NEAR(times[31], 2.05, 1e-9);
  EXPECT_NEAR(times[70], 4, 1e-9);
}

TEST(Arrivals, ARequestMayBeDueSeveralStepsLater) {
  const std::vector<RateStep> steps{{10, 1s}, {0.25, 1s}, {0.25, 1s}, {10, 1s}};
  const auto times = times_of(Arrivals::in_steps(Arrivals::constant(1, 0), steps, 1, 0s), 12);
  EXPECT_NEAR(times[10], 1, 1e-9);
  EXPECT_NEAR(times[11], 3.05, 1e-9);
}

TEST(Arrivals, PoissonArrivalsFollowSteps) {
  const std::vector<RateStep> steps{{1000, 10s}, {4000, 10s}};
  auto arrivals = Arrivals::in_steps(Arrivals::poisson(1, 1), steps, 1, 0s);
  int first = 0;
  int second = 0;
  for (; arrivals.next() < 20s; arrivals.advance()) ++(arrivals.next() < 10s ? first : second);
  EXPECT_NEAR(first, 10'000, 500);  // five standard deviations
  EXPECT_NEAR(second, 40'000, 1000);
}

}  // namespace
}  // namespace offload::client
