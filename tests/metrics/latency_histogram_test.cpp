#include "metrics/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace offload::metrics {
namespace {

using std::chrono::nanoseconds;

/// Half the width of a bucket, as a share of the values in it, at most.
constexpr double kHalfStep = 0.5 / (1U << LatencyHistogram::kStepBits);

LatencyHistogram histogram_of(const std::vector<std::int64_t>& values) {
  LatencyHistogram histogram;
  for (const auto value : values) histogram.record(nanoseconds(value));
  return histogram;
}

/// The same definition of a percentile, on the sorted values themselves.
std::int64_t exact_percentile(const std::vector<std::int64_t>& sorted, double quantile) {
  const double rank = std::ceil(quantile * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

TEST(LatencyHistogram, EmptyReadsAsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), nanoseconds(0));
  EXPECT_EQ(histogram.max(), nanoseconds(0));
  EXPECT_EQ(histogram.percentile(0.5), nanoseconds(0));
}

TEST(LatencyHistogram, OneValueIsEveryPercentile) {
  const auto histogram = histogram_of({123'456'789});
  for (const double quantile : {0.0, 0.5, 0.999, 1.0}) {
    EXPECT_EQ(histogram.percentile(quantile), nanoseconds(123'456'789)) << quantile;
  }
}

TEST(LatencyHistogram, MinimumAndMaximumAreExact) {
  const auto histogram = histogram_of({1'000'003, 77'777'777'777, 999'999'999});
  EXPECT_EQ(histogram.min(), nanoseconds(1'000'003));
  EXPECT_EQ(histogram.max(), nanoseconds(77'777'777'777));
  EXPECT_EQ(histogram.percentile(0), histogram.min());
  EXPECT_EQ(histogram.percentile(1), histogram.max());
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= 200; ++value) values.push_back(value);
  const auto histogram = histogram_of(values);
  EXPECT_EQ(histogram.percentile(0.5), nanoseconds(100));
  EXPECT_EQ(histogram.percentile(0.99), nanoseconds(198));
}

TEST(LatencyHistogram, PercentilesAreWithinHalfAStep) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log(1e13));
  std::vector<std::int64_t> values(20'000);
  for (auto& value : values) value = static_cast<std::int64_t>(std::exp(exponent(random)));
  const auto histogram = histogram_of(values);
  std::sort(values.begin(), values.end());
  for (int permille = 1; permille <= 999; ++permille) {
    const double quantile = permille / 1000.0;
    const auto exact = static_cast<double>(exact_percentile(values, quantile));
    const auto found = static_cast<double>(histogram.percentile(quantile).count());
    EXPECT_NEAR(found, exact, exact * kHalfStep) << quantile;
  }
}

TEST(LatencyHistogram, EveryPowerOfTwoIsWithinHalfAStep) {
  for (unsigned bit = 0; bit < 63; ++bit) {
    for (const std::int64_t offset : {-1, 0, 1}) {
      const std::int64_t value = std::max<std::int64_t>((std::int64_t{1} << bit) + offset, 0);
      // 0 and the largest value beside it, so that clamping to the extremes cannot hide an error.
      const auto histogram = histogram_of({0, value, std::numeric_limits<std::int64_t>::max()});
      const auto found = static_cast<double>(histogram.percentile(0.5).count());
      EXPECT_NEAR(found, static_cast<double>(value), static_cast<double>(value) * kHalfStep)
          << value;
    }
  }
}

TEST(LatencyHistogram, NoPercentileIsOutsideOfWhatWasRecorded) {
  // Each in the lower or upper half of its bucket, whose middle is beyond it.
  for (const std::int64_t value : {(std::int64_t{1} << 40) + 1, (std::int64_t{1} << 40) - 1}) {
    const auto histogram = histogram_of({value, value, value});
    for (const double quantile : {0.01, 0.5, 0.6}) {
      EXPECT_EQ(histogram.percentile(quantile), nanoseconds(value)) << quantile;
    }
  }
}

TEST(LatencyHistogram, NegativeCountsAsZero) {
  const auto histogram = histogram_of({-5, 7, 9});
  EXPECT_EQ(histogram.min(), nanoseconds(0));
  EXPECT_EQ(histogram.count(), 3U);
}

TEST(LatencyHistogram, MergedIsAsIfRecordedInOne) {
  std::mt19937_64 random(2);
  LatencyHistogram all;
  LatencyHistogram left;
  LatencyHistogram right;
  for (int i = 0; i < 10'000; ++i) {
    const nanoseconds value(random() % 1'000'000);
    all.record(value);
    (i % 3 == 0 ? left : right).record(value);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), all.count());
  EXPECT_EQ(left.min(), all.min());
  EXPECT_EQ(left.max(), all.max());
  for (const double quantile : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    EXPECT_EQ(left.percentile(quantile), all.percentile(quantile)) << quantile;
  }
}

TEST(LatencyHistogram, ManyEqualOnesAreAsIfEachWasRecorded) {
  const auto together = std::make_unique<LatencyHistogram>();
  const auto each = std::make_unique<LatencyHistogram>();
  for (const std::uint64_t count : {1U, 7U, 100U}) {
    const std::chrono::nanoseconds latency(1000 * count);
    together->record(latency, count);
    for (std::uint64_t i = 0; i < count; ++i) each->record(latency);
  }
  EXPECT_EQ(together->count(), 108U);
  EXPECT_EQ(together->summary(), each->summary());
}

TEST(LatencyHistogram, MergedHasTheExtremesOfBoth) {
  auto histogram = histogram_of({20, 30});
  histogram.merge(histogram_of({10}));
  EXPECT_EQ(histogram.min(), nanoseconds(10));
  histogram.merge(histogram_of({40}));
  EXPECT_EQ(histogram.min(), nanoseconds(10));
  EXPECT_EQ(histogram.max(), nanoseconds(40));
  EXPECT_EQ(histogram.count(), 4U);
}

TEST(LatencyHistogram, CountsUpToALatency) {
  const auto histogram = histogram_of({0, 10, 20, 20, 30});
  const auto count = [&](int ns) { return histogram.count_up_to(nanoseconds(ns)); };
  EXPECT_EQ(count(-1), 1U);  // a negative one counts as 0
  EXPECT_EQ(count(9), 1U);
  EXPECT_EQ(count(10), 2U);
  EXPECT_EQ(count(19), 2U);
  EXPECT_EQ(count(20), 4U);
  EXPECT_EQ(count(30), 5U);
  EXPECT_EQ(count(1'000'000), 5U);
}

TEST(LatencyHistogram, MergingAnEmptyOneChangesNothing) {
  auto histogram = histogram_of({10, 20});
  histogram.merge(LatencyHistogram{});
  EXPECT_EQ(histogram.min(), nanoseconds(10));
  EXPECT_EQ(histogram.count(), 2U);
}

TEST(LatencyHistogram, ClearedIsAsIfNew) {
  auto histogram = histogram_of({10, 2'000'000, 77'777'777'777});
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.end_bucket(), 0U);
  EXPECT_EQ(histogram.min(), nanoseconds(0));
  EXPECT_EQ(histogram.max(), nanoseconds(0));
  for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    ASSERT_EQ(histogram.count_at(i), 0U) << i;
  }
  histogram.record(nanoseconds(5'000));
  EXPECT_EQ(histogram.min(), nanoseconds(5'000));
  EXPECT_EQ(histogram.percentile(0.5), nanoseconds(5'000));
}

TEST(LatencyHistogram, TheMeanIsWithinHalfAStep) {
  EXPECT_EQ(LatencyHistogram().mean().count(), 0.0);
  EXPECT_EQ(histogram_of({123'456'789}).mean().count(), 123'456'789.0);
  std::mt19937_64 random(3);
  LatencyHistogram histogram;
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() % 50'000'000);
    histogram.record(nanoseconds(value));
    sum += static_cast<double>(value);
  }
  EXPECT_NEAR(histogram.mean().count(), sum / 10'000, sum / 10'000 * kHalfStep);
}

/// HdrHistogram's own way to the place of a value in its array of counts, from its parameters:
/// countsArrayIndex() of AbstractHistogram.java.
std::size_t hdr_index(std::uint64_t value, unsigned significant_digits) {
  const double largest_single_step = 2 * std::pow(10, significant_digits);
  const auto magnitude = static_cast<int>(std::ceil(std::log2(largest_single_step)));
  const std::int64_t half_count = std::int64_t{1} << (magnitude - 1);
  const std::uint64_t mask = (std::uint64_t{1} << magnitude) - 1;
  const int bucket = 64 - magnitude - std::countl_zero(value | mask);
  const auto sub_bucket = static_cast<std::int64_t>(value >> bucket);
  return static_cast<std::size_t>(((bucket + 1) << (magnitude - 1)) + sub_bucket - half_count);
}

TEST(LatencyHistogram, ItsBucketsAreThoseOfHdrHistogram) {
  std::mt19937_64 random(4);
  for (unsigned bit = 0; bit < 63; ++bit) {
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t value = (std::uint64_t{1} << bit) + random() % (std::uint64_t{1} << bit);
      ASSERT_EQ(LatencyHistogram::bucket_of(value),
                hdr_index(value, LatencyHistogram::kSignificantDigits))
          << value;
    }
  }
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    ASSERT_EQ(LatencyHistogram::lowest_of(i), next) << i;
    const std::uint64_t highest = LatencyHistogram::highest_of(i);
    ASSERT_EQ(LatencyHistogram::bucket_of(next), i);
    ASSERT_EQ(LatencyHistogram::bucket_of(highest), i);
    next = highest + 1;
  }
}

TEST(LatencyHistogram, AddedCountsHaveTheExtremesOfTheirBucket) {
  LatencyHistogram histogram;
  const std::size_t low = LatencyHistogram::bucket_of(1'000'000);
  const std::size_t high = LatencyHistogram::bucket_of(9'000'000'000);
  histogram.add(low, 3);
  histogram.add(high, 1);
  histogram.add(high + 100, 0);
  EXPECT_EQ(histogram.count(), 4U);
  EXPECT_EQ(histogram.end_bucket(), high + 1);
  EXPECT_EQ(static_cast<std::uint64_t>(histogram.min().count()), LatencyHistogram::lowest_of(low));
  EXPECT_EQ(static_cast<std::uint64_t>(histogram.max().count()),
            LatencyHistogram::highest_of(high));
}

TEST(LatencyHistogram, EachPercentileOfItsSummaryIsItsOwn) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  std::uint64_t above = 40'000;  // of 100,000: 4 in 10, 4 in 100, ...
  histogram->record(std::chrono::milliseconds(1), 100'000 - above);
  for (int ms = 2; above != 0; ++ms, above /= 10) {
    histogram->record(std::chrono::milliseconds(ms), above - above / 10);
  }
  const auto summary = histogram->summary();
  const std::array<double, 6> expected = {2000, 2000, 3000, 4000, 5000, 6000};  // from p90 on
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, us] = summary[3 + i];
    EXPECT_NEAR(us, expected[i], expected[i] * kHalfStep) << name;
  }
}

TEST(LatencyHistogram, ItsSummaryIsInMicroseconds) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.record(std::chrono::microseconds(i));
  const auto summary = histogram.summary();
  const std::array<std::pair<std::string, double>, 10> expected = {{{"min", 1},
                                                                    {"mean", 500.5},
                                                                    {"p50", 500},
                                                                    {"p90", 900},
                                                                    {"p95", 950},
                                                                    {"p99", 990},
                                                                    {"p99_9", 999},
                                                                    {"p99_99", 1000},
                                                                    {"p99_999", 1000},
                                                                    {"max", 1000}}};
  ASSERT_EQ(summary.size(), expected.size());
  for (std::size_t i = 0; i < summary.size(); ++i) {
    EXPECT_EQ(summary[i].first, expected[i].first);
    EXPECT_NEAR(summary[i].second, expected[i].second, expected[i].second * kHalfStep);
  }
}

}  // namespace
}  // namespace offload::metrics
