#include "metrics/hdr_codec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "core/error.hpp"
#include "tests/metrics/hdr_payload.hpp"
#include "tests/metrics/hdr_vectors.hpp"

namespace offload::metrics {
namespace {

constexpr unsigned kDigits = LatencyHistogram::kSignificantDigits;

void expect_equal_counts(const LatencyHistogram& found, const LatencyHistogram& expected) {
  ASSERT_EQ(found.count(), expected.count());
  ASSERT_EQ(found.end_bucket(), expected.end_bucket());
  for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    ASSERT_EQ(found.count_at(i), expected.count_at(i)) << i;
  }
}

constexpr double kLongest = 9e18;  // ns

/// Returns log-normal latencies, some of more than an hour if `spread` is large.
LatencyHistogram random_histogram(unsigned seed, double spread) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> latency(std::log(30'000), spread);
  LatencyHistogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    histogram.record(
        std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(latency(random), kLongest))));
  }
  return histogram;
}

std::string fault_of(const std::string& text) {
  try {
    decode_hdr(text);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
    std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos);
    return what;
  }
  return "none";
}

std::string fault_of_payload(const std::string& payload) {
  return fault_of(text_with(payload));
}

/// Returns a payload with these bytes instead of those at `offset`.
std::string patched(std::size_t offset, const std::string& bytes) {
  return payload_with("\x02", kDigits).replace(offset, bytes.size(), bytes);
}

TEST(HdrCodec, WhatItEncodesItDecodes) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const LatencyHistogram histogram = random_histogram(seed, 0.3 + seed);
    const std::string text = encode_hdr(histogram);
    EXPECT_TRUE(text.starts_with("HISTFAA")) << text.substr(0, 20);
    EXPECT_LE(text.size(), kMaxHdrText);
    expect_equal_counts(decode_hdr(text), histogram);
  }
}

TEST(HdrCodec, AnEmptyHistogramStaysEmpty) {
  const LatencyHistogram decoded = decode_hdr(encode_hdr({}));
  EXPECT_EQ(decoded.count(), 0U);
  EXPECT_EQ(decoded.min().count(), 0);
  EXPECT_EQ(decoded.max().count(), 0);
}

TEST(HdrCodec, ExtremesAreThoseOfTheirBuckets) {
  LatencyHistogram histogram;
  histogram.record(std::chrono::nanoseconds(1'000'003));
  histogram.record(std::chrono::nanoseconds(77'777'777));
  const LatencyHistogram decoded = decode_hdr(encode_hdr(histogram));
  EXPECT_EQ(static_cast<std::uint64_t>(decoded.min().count()),
            LatencyHistogram::lowest_of(LatencyHistogram::bucket_of(1'000'003)));
  EXPECT_EQ(static_cast<std::uint64_t>(decoded.max().count()),
            LatencyHistogram::highest_of(LatencyHistogram::bucket_of(77'777'777)));
  EXPECT_DOUBLE_EQ(decoded.mean().count(), histogram.mean().count());
}

TEST(HdrCodec, AHistogramOfEveryBucketFitsTheLimits) {
  LatencyHistogram histogram;
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < LatencyHistogram::kBuckets; ++i) histogram.add(i, random() >> 32U);
  const std::string text = encode_hdr(histogram);
  EXPECT_LE(text.size(), kMaxHdrText);
  expect_equal_counts(decode_hdr(text), histogram);
}

TEST(HdrCodec, ItReadsAndWritesAsHdrHistogramDoes) {
  ASSERT_EQ(kHdrVectorDigits, kDigits);
  for (const HdrVector& vector : hdr_vectors()) {
    SCOPED_TRACE(vector.name);
    LatencyHistogram expected;
    for (const auto& [value, count] : vector.counts) {
      expected.add(LatencyHistogram::bucket_of(value), count);
    }
    expect_equal_counts(decode_hdr(vector.text), expected);
    // Their zlib may compress in another way, and their highest trackable value may be another one.
    std::string theirs = payload_in(vector.text);
    const std::string ours = payload_in(encode_hdr(expected));
    EXPECT_EQ(ours.substr(0, 24), theirs.substr(0, 24));
    EXPECT_EQ(ours.substr(32), theirs.substr(32));
    if (vector.highest != 1'000'000) {
      EXPECT_EQ(ours.substr(24, 8), theirs.substr(24, 8));
    }
  }
}

TEST(HdrCodec, TextThatIsNotBase64IsRefused) {
  const std::string right = encode_hdr(random_histogram(1, 0.5));
  for (const char wrong : {' ', '\n', '=', '-', '\0', '\x80'}) {
    std::string text = right;
    text[10] = wrong;
    EXPECT_NE(fault_of(text).find("not base64"), std::string::npos) << text[10];
  }
  EXPECT_NE(fault_of(right + "\n").find("not base64"), std::string::npos);
  EXPECT_NE(fault_of("====").find("not base64"), std::string::npos);
  EXPECT_NE(fault_of(std::string(kMaxHdrText + 4, 'A')).find("too long"), std::string::npos);
}

TEST(HdrCodec, CutTextIsRefused) {
  const std::string text = encode_hdr(random_histogram(1, 0.5));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(fault_of(text.substr(0, size)), "none") << size;
  }
  const std::string payload = payload_in(text);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_NE(fault_of_payload(payload.substr(0, size)), "none") << size;
  }
}

TEST(HdrCodec, AWrongHeaderIsRefused) {
  EXPECT_EQ(fault_of_payload(payload_with("\x02", kDigits)), "none");
  EXPECT_NE(fault_of_payload(patched(0, big_endian(0x1c849301, 4))).find("inner cookie"),
            std::string::npos);
  EXPECT_NE(
      fault_of_payload(patched(4, big_endian(2, 4))).find("1 bytes of counts, but declares 2"),
      std::string::npos);
  EXPECT_NE(fault_of_payload(patched(8, big_endian(1, 4))).find("shifted"), std::string::npos);
  EXPECT_NE(fault_of_payload(patched(12, big_endian(5, 4))).find("5 significant digits"),
            std::string::npos);
  EXPECT_NE(fault_of_payload(patched(16, big_endian(1000, 8))).find("value is 1000, not 1"),
            std::string::npos);
  for (const std::uint64_t highest : {std::uint64_t{0}, std::uint64_t{1} << 63U, UINT64_MAX}) {
    EXPECT_NE(fault_of_payload(patched(24, big_endian(highest, 8))).find("highest trackable"),
              std::string::npos);
  }
  EXPECT_NE(fault_of_payload(patched(32, big_endian(0, 8))).find("whole numbers"),
            std::string::npos);
}

TEST(HdrCodec, AWrongOuterHeaderIsRefused) {
  const std::string zlib = deflated(payload_with("\x02", kDigits));
  const auto text = [](std::uint64_t cookie, std::size_t length, const std::string& rest) {
    return base64_of(big_endian(cookie, 4) + big_endian(length, 4) + rest);
  };
  EXPECT_EQ(fault_of(text(0x1c849314, zlib.size(), zlib)), "none");
  EXPECT_EQ(fault_of(text(0x1c849304, zlib.size(), zlib)), "none")
      << "the cookie without word size";
  EXPECT_NE(fault_of(text(0x1c849302, zlib.size(), zlib)).find("cookie is 0x1c849302"),
            std::string::npos);
  EXPECT_NE(fault_of(text(0x1c849314, zlib.size() - 1, zlib)).find("but declares"),
            std::string::npos);
  EXPECT_NE(fault_of(text(0x1c849314, zlib.size() + 1, zlib + "x")).find("one whole zlib stream"),
            std::string::npos);
  EXPECT_NE(fault_of(text(0x1c849314, 4, "what")).find("zlib"), std::string::npos);
}

TEST(HdrCodec, CountsOutsideOfTheRangeAreRefused) {
  const std::string zeros(LatencyHistogram::kBuckets, '\0');
  const std::uint64_t largest = INT64_MAX;
  EXPECT_EQ(fault_of_payload(payload_with(zeros, kDigits, largest)), "none");
  EXPECT_NE(fault_of_payload(payload_with(zeros + "\x02", kDigits, largest)).find("above"),
            std::string::npos);
  EXPECT_NE(fault_of_payload(payload_with(zeros, kDigits)).find("above"), std::string::npos);
  // The longest run of zeros that there is, and one that ends just beyond the last bucket.
  const std::string longest(9, '\xff');
  EXPECT_NE(fault_of_payload(payload_with(longest, kDigits)).find("above"), std::string::npos);
  EXPECT_NE(fault_of_payload(payload_with("\x02\x01" + longest, kDigits)).find("above"),
            std::string::npos);
}

TEST(HdrCodec, CountsThatOverflowAreRefused) {
  const std::string half = std::string(7, '\x80') + "\x10";  // 2^52, as ZigZag makes 2^53 of it
  EXPECT_EQ(decode_hdr(text_with(payload_with(half + half, kDigits))).count(), kMaxHdrCount);
  EXPECT_NE(fault_of_payload(payload_with(half + half + "\x02", kDigits)).find("more than"),
            std::string::npos);
  const std::string largest = "\xfe" + std::string(8, '\xff');  // 2^63 - 1
  EXPECT_NE(fault_of_payload(payload_with(largest, kDigits)).find("more than"), std::string::npos);
  EXPECT_NE(fault_of_payload(payload_with(std::string(9, '\x80'), kDigits)).find("more than"),
            std::string::npos);
}

TEST(HdrCodec, ABombIsRefused) {
  const std::string zeros(8'000'000, '\0');
  const std::string text = text_with(payload_with(zeros, kDigits));
  ASSERT_LE(text.size(), kMaxHdrText);
  EXPECT_NE(fault_of(text).find("inflates beyond its limit"), std::string::npos);
}

TEST(HdrCodec, AnyByteOfAPayloadMayBeWrong) {
  const std::string right = payload_in(encode_hdr(random_histogram(2, 0.2)));
  std::mt19937_64 random(6);
  for (std::size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ static_cast<char>(1 + random() % 255));
    fault_of_payload(wrong);  // that it is refused, or not; but nothing else
  }
}

TEST(HdrCodec, TooManyLatenciesAreNotEncoded) {
  LatencyHistogram histogram;
  histogram.add(5, kMaxHdrCount);
  EXPECT_EQ(decode_hdr(encode_hdr(histogram)).count(), kMaxHdrCount);
  histogram.add(6, 1);
  EXPECT_THROW(encode_hdr(histogram), core::Error);
}

}  // namespace
}  // namespace offload::metrics
