#include "metrics/hdr_codec.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "core/error.hpp"

namespace offload::metrics {
namespace {

using Bytes = std::vector<unsigned char>;
using View = std::span<const unsigned char>;

// AbstractHistogram.java of HdrHistogram: encodeIntoByteBuffer() and the functions it calls.
constexpr std::uint32_t kCookie = 0x1c849303;
constexpr std::uint32_t kCompressedCookie = 0x1c849304;
constexpr std::uint32_t kWordSize = 0xf0;      // the bits of a cookie that V2 has no use for
constexpr std::uint32_t kVariableWord = 0x10;  // what V2 writes there
constexpr std::size_t kOuterHeader = 8;
constexpr std::size_t kInnerHeader = 40;
constexpr unsigned kMaxCountBytes = 9;
constexpr std::size_t kMaxPayload = kInnerHeader + kMaxCountBytes * LatencyHistogram::kBuckets;
constexpr double kRatio = 1;  // of the values to their unit: 1 unless they are fractions
constexpr std::uint64_t kHour = 3'600'000'000'000;  // ns
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void throw_bad(const std::string& what) {
  throw core::Error(core::ErrorCode::bad_message, "not an HdrHistogram V2 histogram: " + what);
}

template <class Integer>
void put(Bytes& bytes, Integer value) {
  for (std::size_t i = sizeof value; i-- > 0;) {
    bytes.push_back(static_cast<unsigned char>(value >> (8 * i)));
  }
}

/// Takes an integer off the front. Precondition: it is there.
template <class Integer>
Integer take(View& bytes) {
  Integer value = 0;
  for (const unsigned char each : bytes.first(sizeof value)) {
    value = static_cast<Integer>((value << 8U) | each);
  }
  bytes = bytes.subspan(sizeof value);
  return value;
}

/// LEB128 of a ZigZag number; the ninth byte has 8 bits of it.
void put_number(Bytes& bytes, std::int64_t number) {
  auto rest =
      (static_cast<std::uint64_t>(number) << 1U) ^ static_cast<std::uint64_t>(number >> 63U);
  for (unsigned i = 1; i < kMaxCountBytes && rest >= 0x80; ++i, rest >>= 7U) {
    bytes.push_back(static_cast<unsigned char>(rest | 0x80));
  }
  bytes.push_back(static_cast<unsigned char>(rest));
}

std::int64_t take_number(View& bytes) {
  std::uint64_t zigzag = 0;
  for (unsigned i = 0; i < kMaxCountBytes; ++i) {
    if (bytes.empty()) throw_bad("a count is truncated");
    const std::uint64_t byte = take<std::uint8_t>(bytes);
    const bool is_last = i + 1 == kMaxCountBytes || byte < 0x80;
    zigzag |= (i + 1 == kMaxCountBytes ? byte : byte & 0x7f) << (7 * i);
    if (is_last) break;
  }
  return static_cast<std::int64_t>((zigzag >> 1U) ^ (~(zigzag & 1) + 1));
}

/// The number of buckets that HdrHistogram has for a highest trackable value: whole octaves.
std::size_t buckets_up_to(std::uint64_t highest) {
  const std::uint64_t octave_end = std::bit_ceil(highest + 1) - 1;
  const std::uint64_t unit_steps = (std::uint64_t{2} << LatencyHistogram::kStepBits) - 1;
  return LatencyHistogram::bucket_of(std::max(octave_end, unit_steps)) + 1;
}

Bytes counts_of(const LatencyHistogram& histogram) {
  Bytes bytes;
  std::int64_t zeros = 0;
  for (std::size_t i = 0; i < histogram.end_bucket(); ++i) {
    const std::uint64_t count = histogram.count_at(i);
    if (count == 0) {
      ++zeros;
      continue;
    }
    if (zeros != 0) put_number(bytes, -zeros);
    zeros = 0;
    put_number(bytes, static_cast<std::int64_t>(count));
  }
  return bytes;
}

Bytes payload_of(const LatencyHistogram& histogram) {
  const Bytes counts = counts_of(histogram);
  const std::uint64_t highest = histogram.end_bucket() <= buckets_up_to(kHour) ? kHour : kLargest;
  Bytes payload;
  put(payload, kCookie | kVariableWord);
  put(payload, static_cast<std::uint32_t>(counts.size()));
  put(payload, std::uint32_t{0});  // normalizing index offset
  put(payload, std::uint32_t{LatencyHistogram::kSignificantDigits});
  put(payload, std::uint64_t{1});  // lowest discernible value
  put(payload, highest);
  put(payload, std::bit_cast<std::uint64_t>(kRatio));
  payload.insert(payload.end(), counts.begin(), counts.end());
  return payload;
}

/// The header's numbers have to be those of a LatencyHistogram. Returns the number of its buckets.
std::size_t take_header(View& payload) {
  if (payload.size() < kInnerHeader) throw_bad("its header is truncated");
  const auto cookie = take<std::uint32_t>(payload);
  if ((cookie & ~kWordSize) != kCookie) throw_bad(fmt::format("its inner cookie is {:#x}", cookie));
  const auto length = take<std::uint32_t>(payload);
  const auto offset = take<std::uint32_t>(payload);
  const auto digits = take<std::uint32_t>(payload);
  const auto lowest = take<std::uint64_t>(payload);
  const auto highest = take<std::uint64_t>(payload);
  const auto ratio = std::bit_cast<double>(take<std::uint64_t>(payload));
  if (length != payload.size()) {
    throw_bad(fmt::format("it has {} bytes of counts, but declares {}", payload.size(), length));
  }
  if (offset != 0) throw_bad("its counts are shifted");
  if (digits != LatencyHistogram::kSignificantDigits) {
    throw_bad(fmt::format("it has {} significant digits, not {}", digits,
                          LatencyHistogram::kSignificantDigits));
  }
  if (lowest != 1) throw_bad(fmt::format("its lowest discernible value is {}, not 1", lowest));
  if (highest < 2 || highest > kLargest) {
    throw_bad(fmt::format("its highest trackable value is {}", highest));
  }
  if (ratio != kRatio) throw_bad("its values are not whole numbers");
  return buckets_up_to(highest);
}

LatencyHistogram histogram_of(View payload) {
  const std::size_t end = take_header(payload);
  LatencyHistogram histogram;
  std::size_t bucket = 0;
  while (!payload.empty()) {
    const std::int64_t number = take_number(payload);
    // A negative number is a run of zeros; negated only once it is known to be small.
    const bool run_fits = number >= 0 || number >= -static_cast<std::int64_t>(end - bucket);
    if (bucket == end || !run_fits) throw_bad("it counts values above its highest trackable value");
    if (number < 0) {
      bucket += static_cast<std::size_t>(-number);
      continue;
    }
    const auto count = static_cast<std::uint64_t>(number);
    if (count > kMaxHdrCount - histogram.count()) {
      throw_bad(fmt::format("it counts more than {} latencies", kMaxHdrCount));
    }
    histogram.add(bucket++, count);
  }
  return histogram;
}

std::string to_base64(const Bytes& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // and EVP_EncodeBlock's final zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Bytes from_base64(std::string_view text) {
  // EVP_DecodeBlock ignores spaces around the text, and takes '=' for zero bytes.
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() > kMaxHdrText) throw_bad("it is too long");
  const std::size_t digits = std::min(text.find_first_not_of(kAlphabet), text.size());
  const std::size_t padding = text.size() - digits;
  if (text.size() % 4 != 0 || padding > 2 || text.substr(digits) != std::string(padding, '=')) {
    throw_bad("it is not base64");
  }
  Bytes bytes(text.size() / 4 * 3);
  const int size =
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  if (size < 0) throw_bad("it is not base64");
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(padding), bytes.end());
  return bytes;
}

Bytes inflated(View compressed) {
  Bytes payload(kMaxPayload);
  uLongf size = payload.size();
  uLong taken = compressed.size();
  const int status = uncompress2(payload.data(), &size, compressed.data(), &taken);
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  if (status == Z_BUF_ERROR && size == payload.size()) throw_bad("it inflates beyond its limit");
  if (status != Z_OK || taken != compressed.size()) throw_bad("it is not one whole zlib stream");
  payload.resize(size);
  return payload;
}

}  // namespace

std::string encode_hdr(const LatencyHistogram& histogram) {
  if (histogram.count() > kMaxHdrCount) {
    throw core::Error(core::ErrorCode::invalid_value,
                      fmt::format("a histogram has more than {} latencies", kMaxHdrCount));
  }
  const Bytes payload = payload_of(histogram);
  Bytes compressed(compressBound(payload.size()));
  uLongf size = compressed.size();
  if (compress(compressed.data(), &size, payload.data(), payload.size()) != Z_OK) {
    throw std::bad_alloc();  // there is no other reason
  }
  Bytes bytes;
  put(bytes, kCompressedCookie | kVariableWord);
  put(bytes, static_cast<std::uint32_t>(size));
  bytes.insert(bytes.end(), compressed.begin(),
               compressed.begin() + static_cast<std::ptrdiff_t>(size));
  return to_base64(bytes);
}

LatencyHistogram decode_hdr(std::string_view text) {
  const Bytes bytes = from_base64(text);
  View rest = bytes;
  if (rest.size() < kOuterHeader) throw_bad("it is truncated");
  const auto cookie = take<std::uint32_t>(rest);
  if ((cookie & ~kWordSize) != kCompressedCookie) {
    throw_bad(fmt::format("its cookie is {:#x}", cookie));
  }
  const auto length = take<std::uint32_t>(rest);
  if (length != rest.size()) {
    throw_bad(fmt::format("it has {} compressed bytes, but declares {}", rest.size(), length));
  }
  return histogram_of(inflated(rest));
}

}  // namespace offload::metrics
