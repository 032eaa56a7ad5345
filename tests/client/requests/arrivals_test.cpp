#include "apps/client/requests/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

}  // namespace
}  // namespace offload::client
