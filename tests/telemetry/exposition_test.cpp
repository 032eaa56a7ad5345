#include "telemetry/exposition.hpp"

#include <gtest/gtest.h>

#include "telemetry/histograms.hpp"

namespace offload::telemetry {
namespace {

constexpr Metric kCount{"x_total", "Things."};
constexpr Metric kTime{"x_seconds", "Time."};

bool has_line(const Exposition& page, const std::string& line) {
  return ("\n" + page.text()).find("\n" + line + "\n") != std::string::npos;
}

/// Returns the page of two threads.
Exposition page_of_two(bool per_thread) {
  Exposition page(per_thread);
  for (std::size_t i = 0; i < 2; ++i) {
    page.counter(kCount, with(page.shard("thread", i), "reason", "reset"), i == 0 ? 2 : 12);
    page.gauge_of_most(kTime, page.shard("thread", i), i == 0 ? 1.5 : 0.5);
  }
  return page;
}

TEST(Exposition, SaysWhatAMetricIs) {
  const auto page = page_of_two(false);
  EXPECT_TRUE(has_line(page, "# HELP x_total Things."));
  EXPECT_TRUE(has_line(page, "# TYPE x_total counter"));
  EXPECT_TRUE(has_line(page, "# TYPE x_seconds gauge"));
}

TEST(Exposition, ThreadsAreAddedUp) {
  const auto page = page_of_two(false);
  EXPECT_TRUE(has_line(page, "x_total{reason=\"reset\"} 14")) << page.text();
  EXPECT_TRUE(has_line(page, "x_seconds 1.5"));
}

TEST(Exposition, ThreadsAreToldApartWhereThatIsWanted) {
  const auto page = page_of_two(true);
  EXPECT_TRUE(has_line(page, "x_total{thread=\"0\",reason=\"reset\"} 2")) << page.text();
  EXPECT_TRUE(has_line(page, "x_total{thread=\"1\",reason=\"reset\"} 12"));
  EXPECT_TRUE(has_line(page, "x_seconds{thread=\"1\"} 0.5"));
}

TEST(Exposition, AHistogramIsCumulativeAndAddedUp) {
  DurationHistogram histogram;
  histogram.record(std::chrono::microseconds(1));
  histogram.record(std::chrono::microseconds(2));
  histogram.record(core::seconds(20));
  Exposition page(false);
  page.histogram(kTime, {}, histogram);
  page.histogram(kTime, {}, histogram);
  EXPECT_TRUE(has_line(page, "x_seconds_bucket{le=\"1e-06\"} 2")) << page.text();
  EXPECT_TRUE(has_line(page, "x_seconds_bucket{le=\"10\"} 4"));
  EXPECT_TRUE(has_line(page, "x_seconds_bucket{le=\"+Inf\"} 6"));
  EXPECT_TRUE(has_line(page, "x_seconds_count 6"));
}

TEST(Exposition, TheSumOfAHistogramIsThatOfItsValues) {
  DurationHistogram durations;
  durations.record(std::chrono::milliseconds(1500));
  SizeHistogram sizes;
  sizes.record(100);
  sizes.record(28);
  Exposition page(false);
  for (int i = 0; i < 2; ++i) {
    page.histogram(kTime, {}, durations);
    page.histogram({"x_bytes", "Lengths."}, {}, sizes);
  }
  EXPECT_TRUE(has_line(page, "x_seconds_sum 3")) << page.text();
  EXPECT_TRUE(has_line(page, "x_bytes_sum 256"));
}

TEST(Exposition, ALabelIsEscaped) {
  Exposition page(false);
  page.gauge(kTime, {{"name", "a\"b\nc\\"}}, 1);
  EXPECT_TRUE(has_line(page, R"(x_seconds{name="a\"b\nc\\"} 1)")) << page.text();
}

}  // namespace
}  // namespace offload::telemetry
