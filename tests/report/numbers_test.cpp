#include "apps/report/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace offload::report {
namespace {

TEST(Numbers, Grouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(0.8312), "0.831");
  EXPECT_EQ(grouped(83.123), "83.12");
  EXPECT_EQ(grouped(831.23), "831.2");
  EXPECT_EQ(grouped(1234567.8), "1,234,568");
  EXPECT_EQ(grouped(999, 0), "999");
  EXPECT_EQ(grouped(1000, 1), "1,000.0");
  EXPECT_EQ(grouped(-123456, 0), "-123,456");
}

TEST(Numbers, Times) {
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(0.83), "830 ns");
  EXPECT_EQ(time_text(1), "1 µs");
  EXPECT_EQ(time_text(83.12), "83.1 µs");
  EXPECT_EQ(time_text(999.6), "1 ms");
  EXPECT_EQ(time_text(1020), "1.02 ms");
  EXPECT_EQ(time_text(2.5e6), "2.5 s");
}

// Rounding leaves no four digits, and none too few.
TEST(Numbers, HaveThreeDigitsOnBothSidesOfEachStep) {
  EXPECT_EQ(time_text(0.9994), "999 ns");
  EXPECT_EQ(time_text(0.9996), "1 µs");
  EXPECT_EQ(time_text(9.994), "9.99 µs");
  EXPECT_EQ(time_text(9.996), "10 µs");
  EXPECT_EQ(time_text(99.94), "99.9 µs");
  EXPECT_EQ(time_text(99.96), "100 µs");
  EXPECT_EQ(time_text(999.4), "999 µs");
  EXPECT_EQ(time_text(999.4e3), "999 ms");
  EXPECT_EQ(time_text(999.6e3), "1 s");
  EXPECT_EQ(short_text(999.4), "999");
  EXPECT_EQ(short_text(999.6), "1k");
  EXPECT_EQ(short_text(999.4e3), "999k");
  EXPECT_EQ(short_text(999.6e3), "1M");
  EXPECT_EQ(short_text(999.4e6), "999M");
  EXPECT_EQ(short_text(999.6e6), "1G");
  // At the step itself the larger unit is used: "1000 µs" has four digits.
  EXPECT_EQ(time_text(0.9995), "1 µs");
  EXPECT_EQ(time_text(9.995), "10 µs");
  EXPECT_EQ(time_text(999.5), "1 ms");
  EXPECT_EQ(time_text(999.5e3), "1 s");
  EXPECT_EQ(short_text(999.5), "1k");
  EXPECT_EQ(short_text(999.5e3), "1M");
  EXPECT_EQ(short_text(999.5e6), "1G");
  EXPECT_EQ(grouped(9.9), "9.900");
  EXPECT_EQ(grouped(10), "10.00");
  EXPECT_EQ(grouped(100), "100.0");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(counted(0), "0");
  EXPECT_EQ(counted(1'000'000), "1,000,000");
}

TEST(Numbers, Short) {
  EXPECT_EQ(short_text(0), "0");
  EXPECT_EQ(short_text(50), "50");
  EXPECT_EQ(short_text(812345), "812k");
  EXPECT_EQ(short_text(1.02e6), "1.02M");
  EXPECT_EQ(short_text(3e9), "3G");
}

TEST(Numbers, LinearTicks) {
  EXPECT_EQ(linear_ticks(0, 30, 8), (std::vector<double>{0, 5, 10, 15, 20, 25, 30}));
  EXPECT_EQ(linear_ticks(0, 1.1, 6), (std::vector<double>{0, 0.2, 0.4, 0.2 * 3, 0.8, 1}));
  EXPECT_EQ(linear_ticks(0, 280e3, 6).size(), 6U);
  EXPECT_EQ(linear_ticks(10, 30, 5), (std::vector<double>{10, 15, 20, 25, 30}));
  for (const double high : {1e-9, 0.7, 3.3, 99.0, 1e12}) {
    const auto ticks = linear_ticks(0, high, 6);
    EXPECT_GE(ticks.size(), 3U) << high;
    EXPECT_LE(ticks.size(), 8U) << high;
    EXPECT_FALSE(std::signbit(ticks.front()));
  }
}

TEST(Numbers, LogTicks) {
  EXPECT_EQ(log_ticks(10, 100), (std::vector<double>{10, 20, 50, 100}));
  EXPECT_EQ(log_ticks(1, 100'000).size(), 6U) << "powers of ten alone";
  EXPECT_EQ(rounded_range(13, 8519), (std::pair<double, double>{10, 10'000}));
  EXPECT_EQ(log_ticks(2, 1999), (std::vector<double>{2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  EXPECT_EQ(log_ticks(2, 2001), (std::vector<double>{10, 100, 1000})) << "more than three decades";
  EXPECT_EQ(rounded_range(7, 7), (std::pair<double, double>{5, 10}));
  EXPECT_EQ(rounded_range(10, 10), (std::pair<double, double>{10, 20}));
  EXPECT_EQ(rounded_range(20, 50), (std::pair<double, double>{20, 50}));
}

TEST(Numbers, Utc) {
  EXPECT_EQ(utc_text(1763879556.9), "2025-11-23 06:32:36 UTC");
  EXPECT_EQ(utc_text(0), "1970-01-01 00:00:00 UTC");
}

}  // namespace
}  // namespace offload::report
