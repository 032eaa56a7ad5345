#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace offload::support {

using Bytes = std::vector<std::byte>;

/// The bytes of a text, referred to.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// `values` as bytes: what a golden message is written down as.
inline Bytes bytes(std::initializer_list<unsigned> values) {
  Bytes result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

/// The same for the same seed.
inline Bytes random_bytes(std::size_t size, std::uint32_t seed) {
  std::minstd_rand random(seed + 1);
  Bytes result(size);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random() >> 8);
  return result;
}

inline Bytes reversed(std::span<const std::byte> bytes) {
  return {bytes.rbegin(), bytes.rend()};
}

inline Bytes copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace offload::support
