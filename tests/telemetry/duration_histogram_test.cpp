#include <gtest/gtest.h>

#include "telemetry/histograms.hpp"

namespace offload::telemetry {
namespace {

using std::chrono::nanoseconds;

TEST(DurationHistogram, BoundsGoFromAMicrosecondToTenSeconds) {
  const auto& bounds = DurationHistogram::kBounds;
  EXPECT_EQ(bounds[0], 1000U);
  EXPECT_EQ(bounds[1], 2500U);
  EXPECT_EQ(bounds[2], 5000U);
  EXPECT_EQ(bounds[3], 10'000U);
  EXPECT_EQ(bounds.back(), 10'000'000'000U);
}

TEST(DurationHistogram, ABoundIsInclusive) {
  DurationHistogram histogram;
  histogram.record(nanoseconds(1000));
  histogram.record(nanoseconds(1001));
  EXPECT_EQ(histogram.count_at(0), 1U);
  EXPECT_EQ(histogram.count_at(1), 1U);
  EXPECT_EQ(histogram.sum(), 2001U);
}

TEST(DurationHistogram, WhatIsOutOfTheBoundsIsCounted) {
  DurationHistogram histogram;
  histogram.record(nanoseconds(-5));
  histogram.record(core::seconds(11));
  EXPECT_EQ(histogram.count_at(0), 1U);
  EXPECT_EQ(histogram.count_at(DurationHistogram::kBounds.size()), 1U);
  EXPECT_EQ(histogram.sum(), 11'000'000'000U);
}

TEST(DurationHistogram, TakesWhatOthersHaveRecorded) {
  DurationHistogram histogram;
  histogram.record(nanoseconds(1));
  EXPECT_EQ(histogram.sum(), 1U);
  histogram.add(0, 2);
  histogram.add(3, 4);
  histogram.add_sum(30'000);
  EXPECT_EQ(histogram.count_at(0), 3U);
  EXPECT_EQ(histogram.count_at(3), 4U);
  EXPECT_EQ(histogram.sum(), 30'001U);
}

}  // namespace
}  // namespace offload::telemetry
