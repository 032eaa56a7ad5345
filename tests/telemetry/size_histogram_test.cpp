#include <gtest/gtest.h>

#include "telemetry/histograms.hpp"

namespace offload::telemetry {
namespace {

constexpr std::size_t kLast = SizeHistogram::kBounds.size();

TEST(SizeHistogram, BoundsGoByPowersOfFour) {
  const auto& bounds = SizeHistogram::kBounds;
  EXPECT_EQ(bounds.front(), 64U);
  EXPECT_EQ(bounds[1], 256U);
  EXPECT_EQ(bounds.back(), std::uint64_t{16} << 20U);
}

TEST(SizeHistogram, EachBoundIsTheLastOfItsBucket) {
  for (std::size_t i = 0; i < kLast; ++i) {
    SizeHistogram histogram;
    const std::uint64_t bound = SizeHistogram::kBounds[i];
    histogram.record(bound);
    histogram.record(bound - 1);
    histogram.record(bound + 1);
    EXPECT_EQ(histogram.count_at(i), 2U) << bound;
    EXPECT_EQ(histogram.count_at(i + 1), 1U) << bound;
    EXPECT_EQ(histogram.sum(), 3 * bound);
  }
}

TEST(SizeHistogram, TheFirstBucketHasTheShortestAndTheLastTheRest) {
  SizeHistogram histogram;
  histogram.record(0);
  histogram.record(1);
  EXPECT_EQ(histogram.count_at(0), 2U);
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.count_at(kLast), 1U);
}

}  // namespace
}  // namespace offload::telemetry
