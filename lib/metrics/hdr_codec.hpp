#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "metrics/latency_histogram.hpp"

namespace offload::metrics {

/// @file
/// HdrHistogram's V2 encoding of a histogram, compressed, as text: "HISTFAAAA...". The values are
/// nanoseconds, with 1 as the lowest discernible one. Any thread.

/// The longest text that decode_hdr() takes, and more than encode_hdr() makes.
inline constexpr std::size_t kMaxHdrText = 1024 + 2 * 9 * LatencyHistogram::kBuckets;

/// The most latencies that a text may count: merging 2,047 such histograms cannot overflow.
inline constexpr std::uint64_t kMaxHdrCount = std::uint64_t{1} << 53U;

/// Encodes `histogram`. Its highest trackable value is an hour, as many tools take, or the largest
/// possible one if a latency is longer. Throws core::Error (invalid_value) if it has more than
/// kMaxHdrCount latencies.
std::string encode_hdr(const LatencyHistogram& histogram);

/// Decodes what encode_hdr() or another implementation of HdrHistogram has made, with the suite's
/// number of significant digits. As the encoding has counts only, min() and max() of the result are
/// HdrHistogram's: the lowest value of the first bucket in use and the highest value of the last
/// one. Throws core::Error (bad_message) for any other text.
LatencyHistogram decode_hdr(std::string_view text);

}  // namespace offload::metrics
