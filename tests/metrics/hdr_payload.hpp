#pragma once

#include <openssl/evp.h>
#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace offload::metrics {

/// @file
/// The layers of HdrHistogram's text, one by one, so that tests can make wrong ones.

inline std::string base64_of(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()), data, static_cast<int>(bytes.size()))));
  return text;
}

inline std::string bytes_of(std::string_view base64) {
  std::string bytes(base64.size() / 4 * 3, '\0');
  const auto* data = reinterpret_cast<const unsigned char*>(base64.data());
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), data,
                  static_cast<int>(base64.size()));
  while (base64.ends_with('=')) {
    bytes.pop_back();
    base64.remove_suffix(1);
  }
  return bytes;
}

inline std::string big_endian(std::uint64_t value, unsigned size) {
  std::string bytes;
  while (size-- > 0) bytes.push_back(static_cast<char>(value >> (8 * size)));
  return bytes;
}

inline std::string deflated(const std::string& payload) {
  std::string bytes(compressBound(payload.size()), '\0');
  uLongf size = bytes.size();
  compress(reinterpret_cast<Bytef*>(bytes.data()), &size,
           reinterpret_cast<const Bytef*>(payload.data()), payload.size());
  bytes.resize(size);
  return bytes;
}

/// The text with a payload of any kind in it.
inline std::string text_with(const std::string& payload) {
  const std::string bytes = deflated(payload);
  return base64_of(big_endian(0x1c849314, 4) + big_endian(bytes.size(), 4) + bytes);
}

/// A payload with a right header before `counts`.
inline std::string payload_with(const std::string& counts, unsigned digits,
                                std::uint64_t highest = 3'600'000'000'000) {
  return big_endian(0x1c849313, 4) + big_endian(counts.size(), 4) + big_endian(0, 4) +
         big_endian(digits, 4) + big_endian(1, 8) + big_endian(highest, 8) +
         big_endian(0x3ff0'0000'0000'0000, 8) + counts;
}

/// The payload of a right text.
inline std::string payload_in(std::string_view text) {
  const std::string bytes = bytes_of(text).substr(8);
  std::string payload(1 << 20, '\0');
  uLongf size = payload.size();
  if (uncompress(reinterpret_cast<Bytef*>(payload.data()), &size,
                 reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != Z_OK) {
    throw std::runtime_error("not deflated");
  }
  payload.resize(size);
  return payload;
}

}  // namespace offload::metrics
