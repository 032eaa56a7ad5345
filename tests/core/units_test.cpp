#include "core/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string_view>

namespace offload::core {
namespace {

using namespace std::chrono_literals;

TEST(ParseSize, NumbersAndBinaryMultiples) {
  EXPECT_EQ(parse_size("0"), 0U);
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("007"), 7U);
  EXPECT_EQ(parse_size("64k"), 64U << 10);
  EXPECT_EQ(parse_size("64K"), 64U << 10);
  EXPECT_EQ(parse_size("16m"), 16U << 20);
  EXPECT_EQ(parse_size("16M"), 16U << 20);
  EXPECT_EQ(parse_size("3g"), std::uint64_t{3} << 30);
  EXPECT_EQ(parse_size("3G"), std::uint64_t{3} << 30);
  EXPECT_EQ(parse_size("0g"), 0U);
  EXPECT_EQ(parse_size(std::string_view("1234k").substr(0, 2)), 12U);
}

TEST(ParseNumber, TheWholeTextOfEachKind) {
  EXPECT_EQ(parse_number<double>("1.5"), 1.5);
  EXPECT_EQ(parse_number<double>("1.5x"), std::nullopt);
  EXPECT_EQ(parse_number<double>(""), std::nullopt);
  EXPECT_EQ(parse_number<int>("-15"), -15);
  EXPECT_EQ(parse_number<unsigned>("ff", 16), 255U);
  EXPECT_EQ(parse_number<std::uint8_t>("256"), std::nullopt);
}

TEST(ParseSize, UpToSixtyFourBits) {
  EXPECT_EQ(parse_size("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_size("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_size("18014398509481983k"), std::uint64_t{18014398509481983} << 10);
  EXPECT_EQ(parse_size("18014398509481984k"), std::nullopt);
  EXPECT_EQ(parse_size("17592186044416m"), std::nullopt);
  EXPECT_EQ(parse_size("17179869183g"), std::uint64_t{17179869183} << 30);
  EXPECT_EQ(parse_size("17179869184g"), std::nullopt);
}

TEST(ParseSize, NothingElse) {
  for (const char* text : {"", "k", "-1", "+1", " 1", "1 ", "1 k", "1kk", "1kB", "1t", "1.5k",
                           "0x10", "1e3", "k1", "1\n", "ten"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << "'" << text << "'";
  }
  EXPECT_EQ(parse_size(std::string_view("1\0", 2)), std::nullopt);
}

TEST(ParseDuration, EveryUnit) {
  EXPECT_EQ(parse_duration("2"), 2s);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("20us"), 20us);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1h"), 1h);
  EXPECT_EQ(parse_duration("0"), 0s);
  EXPECT_EQ(parse_duration("0.001us"), 1ns);
  EXPECT_EQ(parse_duration("1e-3"), 1ms);
  EXPECT_EQ(parse_duration(std::string_view("1234ms").substr(0, 2)), 12s);
}

TEST(ParseDuration, RoundsToTheNearestNanosecond) {
  EXPECT_EQ(parse_duration("0.0000000016"), 2ns);
  EXPECT_EQ(parse_duration("0.3us"), 300ns);
}

TEST(ParseDuration, UpToAThousandHours) {
  EXPECT_EQ(parse_duration("1000h"), 1000h);
  EXPECT_EQ(parse_duration("3600000"), 1000h);
  EXPECT_EQ(parse_duration("1000.001h"), std::nullopt);
  EXPECT_EQ(parse_duration("60001m"), std::nullopt);
  EXPECT_EQ(parse_duration("1e300"), std::nullopt);
  EXPECT_EQ(parse_duration("1e999"), std::nullopt);
}

TEST(ParseDuration, NothingElse) {
  for (const char* text :
       {"",     "s",  "-1",  "-1ms", "+1", " 1",   "1 s", "1 ",    "inf",  "nan",
        "infs", "1S", "1MS", "1ns",  "1d", "1sec", "1ss", "0x1p3", "soon", "1,5"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << "'" << text << "'";
  }
}

}  // namespace
}  // namespace offload::core
