// The search with simulated servers whose knee is known, while one measurement in twenty is
// disturbed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "apps/client/run/rate_search.hpp"

namespace offload::client {
namespace {

constexpr unsigned kSeeds = 20;
constexpr double kP99Bound = 500;          // µs
constexpr double kServiceTime = 100;       // µs of the queue's server: 10,000 requests/s
constexpr std::size_t kArrivals = 20'000;  // of a measurement

/// An M/D/1 queue, simulated request by request (Lindley's recursion): arrivals at random at `rate`
/// a second, one server.
Measured md1_queue(double rate, std::size_t arrivals, std::mt19937_64& random) {
  std::exponential_distribution<double> gap(rate / 1e6);
  std::vector<double> latencies(arrivals);
  double waiting = 0;
  double elapsed = 0;
  for (double& latency : latencies) {
    latency = waiting + kServiceTime;
    const double next = gap(random);
    elapsed += next;
    waiting = std::max(0.0, latency - next);
  }
  const auto p99 = latencies.begin() + static_cast<std::ptrdiff_t>(arrivals * 99 / 100);
  std::nth_element(latencies.begin(), p99, latencies.end());
  const double achieved = static_cast<double>(arrivals) / (elapsed + waiting) * 1e6;
  return {achieved, *p99, achieved >= 0.95 * rate, true};
}

/// Where the queue's p99 reaches the bound: by far longer simulations, of the same random numbers
/// at every rate.
double md1_knee() {
  double low = 1000;
  double high = 10'000;
  while (high / low > 1.002) {
    const double middle = std::sqrt(low * high);
    std::mt19937_64 random(12345);
    (md1_queue(middle, 400'000, random).latency_us <= kP99Bound ? low : high) = middle;
  }
  return low;
}

/// A token bucket: answers at once up to its capacity, beyond which requests queue.
Measured token_bucket(double capacity, double rate, std::mt19937_64& random) {
  std::uniform_real_distribution<double> jitter(100, 200);
  if (rate <= capacity) return {rate, jitter(random), true, true};
  return {capacity, 1e6 * (1 - capacity / rate) + jitter(random), rate <= capacity * 1.01, true};
}

/// Searches once a seed, from another rate each time, and expects the knee each time.
template <class Server>
void expect_knee(double knee, Server server) {
  std::size_t measurements = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    std::bernoulli_distribution disturbed(0.05);
    const double first = std::exp(std::uniform_real_distribution(0.0, std::log(1e6))(random));
    const SearchLimits asked{
        .first_rate = first, .lowest = 1, .highest = 1e6, .bound_us = kP99Bound};
    const SearchResult result = search_rate(asked, [&](double rate) {
      Measured measured = server(rate, random);
      if (disturbed(random)) measured.latency_us *= 10;
      return measured;
    });
    ASSERT_TRUE(result.rate) << "seed " << seed << ": " << result.reason;
    EXPECT_NEAR(*result.rate / knee, 1, 0.05) << "seed " << seed;
    measurements += result.steps.size();
  }
  EXPECT_LE(measurements / kSeeds, 80U);
}

TEST(RateSearchServers, AQueue) {
  expect_knee(md1_knee(), [](double rate, std::mt19937_64& random) {
    return md1_queue(rate, kArrivals, random);
  });
}

TEST(RateSearchServers, ATokenBucket) {
  for (const double capacity : {300.0, 20'000.0, 777'777.0}) {
    expect_knee(capacity, [capacity](double rate, std::mt19937_64& random) {
      return token_bucket(capacity, rate, random);
    });
  }
}

}  // namespace
}  // namespace offload::client
