#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// Numbers in network order, and the Internet checksum (RFC 1071).
namespace offload::kernels::packets {

OFFLOAD_HOST_DEVICE inline std::uint32_t load_16(const std::uint8_t* from) {
  return std::uint32_t{from[0]} << 8 | from[1];
}
OFFLOAD_HOST_DEVICE inline std::uint32_t load_32(const std::uint8_t* from) {
  return load_16(from) << 16 | load_16(from + 2);
}
OFFLOAD_HOST_DEVICE inline void store_16(std::uint8_t* to, std::uint32_t value) {
  to[0] = static_cast<std::uint8_t>(value >> 8);
  to[1] = static_cast<std::uint8_t>(value);
}

/// Adds bytes to a sum; only the last piece may be of odd length. 64 KiB at most in one sum.
OFFLOAD_HOST_DEVICE inline std::uint32_t add_bytes(std::uint32_t sum, const std::uint8_t* bytes,
                                                   std::uint32_t length) {
  for (std::uint32_t i = 0; i + 1 < length; i += 2) sum += load_16(bytes + i);
  return length % 2 == 0 ? sum : sum + (std::uint32_t{bytes[length - 1]} << 8);
}

/// Returns the checksum of a sum: 0 for bytes that include their right checksum.
OFFLOAD_HOST_DEVICE inline std::uint32_t checksum_of(std::uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace offload::kernels::packets
