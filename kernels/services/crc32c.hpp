#pragma once

#include "kernels/message.hpp"

namespace offload::kernels {

/// Answers with the request's CRC-32C (Castagnoli), 4 bytes, little endian.
///
/// Each lane takes an equal stretch of the message. A checksum is linear: what a stretch adds to
/// the whole is its own checksum advanced over the zeros that stand for the bytes after it.
struct Crc32c {
  static constexpr const char* kName = "crc32c";

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t) { return 4; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    const std::uint32_t length = request.length();
    const std::uint32_t stretch = (length + group.size() - 1) / group.size();
    const std::uint32_t begin = min(group.lane() * stretch, length);
    const std::uint32_t end = min(begin + stretch, length);
    // The initial value belongs to the first stretch alone.
    std::uint32_t crc = begin == 0 && group.lane() == 0 ? ~0U : 0U;
    for (std::uint32_t i = begin; i < end; ++i) crc = advance(crc ^ request.byte(i));
    crc = ~group.combine_xor(multiply(crc, power_of_x(8ULL * (length - end))));
    response.fill(group, [=](std::uint32_t) { return Block{{crc, 0, 0, 0}}; });
  }

  /// The checksum of bytes that are no message, by one thread.
  OFFLOAD_HOST_DEVICE static std::uint32_t of(const std::uint8_t* bytes, std::uint64_t length) {
    std::uint32_t crc = ~0U;
    for (std::uint64_t i = 0; i < length; ++i) crc = advance(crc ^ bytes[i]);
    return ~crc;
  }

 private:
  /// Castagnoli's polynomial; bit 31 is the coefficient of x^0.
  static constexpr std::uint32_t kPolynomial = 0x82f6'3b78U;

  OFFLOAD_HOST_DEVICE static std::uint32_t min(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }

  /// crc · x^8
  OFFLOAD_HOST_DEVICE static std::uint32_t advance(std::uint32_t crc) {
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (kPolynomial & (0U - (crc & 1U)));
    return crc;
  }

  /// a · b modulo the polynomial.
  OFFLOAD_HOST_DEVICE static std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
      if (a & bit) product ^= b;
      b = (b >> 1) ^ (kPolynomial & (0U - (b & 1U)));
    }
    return product;
  }

  /// x^exponent modulo the polynomial, by squaring.
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

}  // namespace offload::kernels
