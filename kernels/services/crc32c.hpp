#pragma once

#include "kernels/crc32c.hpp"
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
    for (std::uint32_t i = begin; i < end; ++i) crc = Arithmetic::advance(crc ^ request.byte(i));
    crc = ~group.combine_xor(
        Arithmetic::multiply(crc, Arithmetic::power_of_x(8ULL * (length - end))));
    response.fill(group, [=](std::uint32_t) { return Block{{crc, 0, 0, 0}}; });
  }

 private:
  using Arithmetic = Crc32cArithmetic;

  OFFLOAD_HOST_DEVICE static std::uint32_t min(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
};

}  // namespace offload::kernels
