#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/message.hpp"

/// Reads of a stranger's payload that end where it ends.
namespace offload::kernels {

/// The 16 bytes from `offset` on, of which those behind the payload's end are zero. Any offset.
OFFLOAD_HOST_DEVICE inline Block block_within(const Request& request, std::uint32_t offset) {
  if (offset >= request.length()) return {};
  Block block = request.block(offset);
  const std::uint32_t left = request.length() - offset;
  if (left >= sizeof(Block)) return block;
  OFFLOAD_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t bytes = left <= 4 * i ? 0 : left - 4 * i;  // of this word
    if (bytes < 4) block.words[i] &= (1U << (8 * bytes)) - 1;
  }
  return block;
}

/// Reads a number of 4 or 8 bytes, little endian, at any `offset`. False, and nothing is read, if
/// not all of it lies within the payload.
template <class Number>
OFFLOAD_HOST_DEVICE bool read_little_endian(const Request& request, std::uint32_t offset,
                                            Number& number) {
  static_assert(std::is_arithmetic_v<Number> && (sizeof number == 4 || sizeof number == 8));
  // No sum that a stranger's offset could overflow.
  if (request.length() < sizeof number || offset > request.length() - sizeof number) return false;
  const Block block = request.block(offset);
  std::memcpy(&number, block.words, sizeof number);
  return true;
}

}  // namespace offload::kernels
