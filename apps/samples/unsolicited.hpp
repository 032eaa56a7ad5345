#pragma once

#include <cstdint>

#include "kernels/channel_layout.hpp"

namespace offload::samples {

/// Returns the watched values: the same for both sides of the sample, so that each can count.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t value_at(std::uint32_t i) {
  std::uint32_t value = i * 2654435761U;
  value ^= value >> 15;
  return value * 2246822519U >> 16;
}

inline constexpr std::uint32_t kChunk = 1024;   ///< values that are looked at together
inline constexpr std::uint32_t kChunks = 4096;  ///< then the watch ends
inline constexpr std::uint32_t kAlarm = 65000;  ///< a value over it is an event
inline constexpr std::uint32_t kEvents = 1000;  ///< the number of events for each notice
inline constexpr std::uint32_t kReceives = 8;   ///< that are posted for them

/// The message that is sent.
struct Notice {
  std::uint32_t events;  ///< so far
  std::uint32_t chunk;   ///< in which the last of them was
};

/// Watches the values by a warp of the GPU, or by this thread where there is none, and sends the
/// notices over `channel`. Returns how many were sent and taken. Throws std::runtime_error.
std::uint32_t watch(kernels::ChannelView channel, const char*& by);

}  // namespace offload::samples
