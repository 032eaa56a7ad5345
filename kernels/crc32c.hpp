#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4), for host and device: of whole buffers, and the
/// arithmetic that joins the checksums of a message's parts.
namespace offload::kernels {

/// Polynomials over GF(2) modulo Castagnoli's, in 32 bits. Bit 31 is the coefficient of x^0.
struct Crc32cArithmetic {
  static constexpr std::uint32_t kPolynomial = 0x82f6'3b78U;

  /// crc · x^8
  OFFLOAD_HOST_DEVICE static std::uint32_t advance(std::uint32_t crc) {
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (kPolynomial & (0U - (crc & 1U)));
    return crc;
  }

  /// a · b
  OFFLOAD_HOST_DEVICE static std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
      if (a & bit) product ^= b;
      b = (b >> 1) ^ (kPolynomial & (0U - (b & 1U)));
    }
    return product;
  }

  /// x^exponent, by squaring.
  OFFLOAD_HOST_DEVICE static std::uint32_t power_of_x(std::uint64_t exponent) {
    std::uint32_t result = 1U << 31;  // x^0
    std::uint32_t square = 1U << 30;  // x^1
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1U) result = multiply(result, square);
      square = multiply(square, square);
    }
    return result;
  }
};

/// The checksum of `length` bytes, by one thread.
OFFLOAD_HOST_DEVICE inline std::uint32_t crc32c(const std::uint8_t* bytes, std::uint64_t length) {
  std::uint32_t crc = ~0U;
  for (std::uint64_t i = 0; i < length; ++i) crc = Crc32cArithmetic::advance(crc ^ bytes[i]);
  return ~crc;
}

}  // namespace offload::kernels
