#include "metrics/hdr_log.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "metrics/hdr_codec.hpp"

namespace offload::metrics {
namespace {

using std::chrono::microseconds;

LatencyHistogram one_latency(microseconds latency) {
  LatencyHistogram histogram;
  histogram.record(latency);
  return histogram;
}

const std::string kText = encode_hdr(one_latency(microseconds(100)));

struct Read {
  std::string tag;
  double start_s;
  double length_s;
  std::uint64_t count;
};

std::vector<Read> read_all(const std::string& text) {
  std::istringstream log(text);
  HdrLogReader reader(log, "a.hlog");
  HdrLogInterval interval;
  std::vector<Read> found;
  while (reader.next(interval)) {
    found.push_back(
        {interval.tag, interval.start_s, interval.length_s, interval.histogram.count()});
  }
  EXPECT_FALSE(reader.next(interval)) << "the end remains";
  return found;
}

std::string fault_in_log(const std::string& text) {
  try {
    read_all(text);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
    return error.what();
  }
  return "none";
}

TEST(HdrLog, ItIsWrittenAsHdrHistogramDoes) {
  EXPECT_EQ(hdr_log_header(1441812279.474),
            "#[Histogram log format version 1.3]\n"
            "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 15:24:39 UTC 2015]\n"
            "#[BaseTime: 1441812279.474 (seconds since epoch)]\n"
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
            "\"Interval_Compressed_Histogram\"\n");
  EXPECT_NE(hdr_log_header(1e300).find("unknown"), std::string::npos);
  const LatencyHistogram histogram = one_latency(microseconds(100));
  // The largest value of the bucket, as HdrHistogram has it: 100,351 ns with 2 digits.
  EXPECT_EQ(hdr_log_line("service_time", 2, 1.0005, histogram),
            "Tag=service_time,2.000,1.000,0.100," + kText + "\n");
  EXPECT_EQ(hdr_log_line("", 0.25, 1, LatencyHistogram{}),
            "0.250,1.000,0.000," + encode_hdr({}) + "\n");
}

TEST(HdrLog, WhatIsWrittenIsRead) {
  const std::string log = hdr_log_header(1.7e9) +
                          hdr_log_line("a", 0, 1, one_latency(microseconds(1))) +
                          hdr_log_line("", 1, 0.5, LatencyHistogram{});
  const auto found = read_all(log);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].tag, "a");
  EXPECT_EQ(found[0].start_s, 1.7e9);
  EXPECT_EQ(found[0].length_s, 1.0);
  EXPECT_EQ(found[0].count, 1U);
  EXPECT_EQ(found[1].tag, "");
  EXPECT_EQ(found[1].start_s, 1.7e9 + 1);
  EXPECT_EQ(found[1].length_s, 0.5);
  EXPECT_EQ(found[1].count, 0U);
}

TEST(HdrLog, CommentsLegendsAndEmptyLinesAreSkipped) {
  const auto found = read_all("#a comment\r\n\r\n\"StartTimestamp\",\"x\"\r\n0.5,1,0.1," + kText +
                              "\r\n\n#\n1.5,1,0.1," + kText);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].start_s, 0.5);
  EXPECT_EQ(found[1].start_s, 1.5);
  EXPECT_TRUE(read_all("").empty());
  EXPECT_TRUE(read_all("#only a comment").empty());
}

TEST(HdrLog, StampsCountFromTheTimesThatTheLogNames) {
  const std::string line = "5,1,0.1," + kText + "\n";
  const std::string absolute = "1700000005,1,0.1," + kText + "\n";
  EXPECT_EQ(read_all("#[StartTime: 1700000000.5 (seconds since epoch), x]\n" + line)[0].start_s,
            1'700'000'005.5)
      << "relative, as it is more than a year before the start";
  EXPECT_EQ(read_all("#[StartTime: 1700000000 (seconds since epoch), x]\n" + absolute)[0].start_s,
            1'700'000'005);
  EXPECT_EQ(read_all("#[BaseTime: 1600000000 (seconds since epoch)]\n" + line)[0].start_s,
            1'600'000'005);
  EXPECT_EQ(read_all(line)[0].start_s, 5);
}

TEST(HdrLog, AWrongLineIsNamedByItsNumber) {
  const std::string before = hdr_log_header(1.7e9) + "1,1,0.1," + kText + "\n";  // 5 lines
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"nonsense", "three numbers"},
      {"1,2", "three numbers"},
      {"1,,0.1," + kText, "three numbers"},
      {"1,1s,0.1," + kText, "three numbers"},
      {"1,nan,0.1," + kText, "three numbers"},
      {"1e999,1,0.1," + kText, "three numbers"},
      {"1,-1,0.1," + kText, "negative"},
      {"1,1,0.1,", "truncated"},
      {"1,1,0.1,HISTF", "base64"},
      {"1,1,0.1," + kText + ",1", "base64"},
      {"Tag=,1,1,0.1," + kText, "tag"},
      {"Tag=a b,1,1,0.1," + kText, "tag"},
      {"Tag=" + std::string(300, 'a') + ",1,1,0.1," + kText, "tag"},
      {"#[StartTime: soon (seconds since epoch)]", "number of seconds"},
      {"#[BaseTime:", "number of seconds"},
      {std::string(kMaxHdrText + 5000, 'x'), "too long"},
  };
  for (const auto& [line, what] : wrong) {
    const std::string fault = fault_in_log(before + line);
    EXPECT_EQ(fault.rfind("a.hlog, line 6: ", 0), 0U) << fault;
    EXPECT_NE(fault.find(what), std::string::npos) << fault;
  }
}

TEST(HdrLog, ALogThatCannotBeReadIsAnError) {
  std::istringstream log("x");
  log.setstate(std::ios::failbit);
  HdrLogReader reader(log, "a.hlog");
  HdrLogInterval interval;
  try {
    reader.next(interval);
    FAIL() << "it was read";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode::io_failed);
  }
}

}  // namespace
}  // namespace offload::metrics
