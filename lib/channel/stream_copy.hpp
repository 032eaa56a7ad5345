#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/channel_packets.hpp"

namespace offload::channel {

/// Shorter copies are faster through the caches, as measured with an H200.
inline constexpr std::size_t kStreamedLength = 16 * 1024;

/// Copies to memory that a device reads next, bypassing the caches: a GPU reads a long payload that
/// is modified in a processor's cache half as fast as from memory. Later stores become visible
/// after it. `to`: 16-byte aligned.
inline void stream_copy(void* to, const void* from, std::size_t length) noexcept {
#if defined(OFFLOAD_PORTABLE_PACKETS)
  std::memcpy(to, from, length);
#else
  constexpr std::size_t kPerLine = 64 / sizeof(__m128i);
  auto* target = static_cast<__m128i*>(to);
  const auto* source = static_cast<const __m128i*>(from);
  // Line by line, loads first, so that a line is written in one piece.
  for (; length >= 64; length -= 64, target += kPerLine, source += kPerLine) {
    __m128i line[kPerLine];
    for (std::size_t i = 0; i < kPerLine; ++i) line[i] = _mm_loadu_si128(source + i);
    for (std::size_t i = 0; i < kPerLine; ++i) _mm_stream_si128(target + i, line[i]);
  }
  std::memcpy(target, source, length);
  _mm_sfence();  // these stores are not ordered like others
#endif
}

/// Chooses memcpy or stream_copy by length, for memory that a device reads next.
inline void copy_for_device(void* to, const void* from, std::size_t length) noexcept {
  if (length >= kStreamedLength) {
    stream_copy(to, from, length);
  } else if (length != 0) {  // no bytes may be at a null pointer
    std::memcpy(to, from, length);
  }
}

}  // namespace offload::channel
