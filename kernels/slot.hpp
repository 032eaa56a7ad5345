#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/platform.hpp"

/// The memory of a channel: what server and worker agree on, byte for byte (docs/wire-protocol.md).
///
///   ChannelHeader | request parts [depth] | response parts [depth]
///
/// A part is an array of self-validating 16-byte vectors, followed, where the channel takes
/// messages too long for that, by room for a plain payload. The plain payload has room of its own:
/// were it laid over the vectors, a stranger's payload could hold what the next lap takes for a
/// valid turn.
namespace offload::kernels {

/// The unit of the self-validating form: read and written by one aligned 16-byte access, so that
/// its data and its turn are never seen apart.
struct alignas(16) Vector {
  std::uint32_t data[3];
  std::uint32_t turn;
};
static_assert(sizeof(Vector) == 16);

/// Payload bytes of a vector. Vector 0 is the header: {length in bytes, Status (0 in a request),
/// 0}.
inline constexpr std::uint32_t kVectorData = 12;
/// A message's vectors are read by the lanes of one warp in one go: the header's and 31 of data.
inline constexpr std::uint32_t kMaxVectors = 32;
/// The longest payload in vectors; a longer one is plain.
inline constexpr std::uint32_t kMaxPacked = (kMaxVectors - 1) * kVectorData;
/// Parts start on their own pair of cache lines.
inline constexpr std::uint32_t kPartAlignment = 128;
/// Bytes that may be read, never used, before and after a payload: blocks are 16 bytes.
inline constexpr std::uint32_t kSlack = 16;

inline constexpr std::uint32_t kMaxDepth = 4096;
inline constexpr std::uint32_t kMaxMessageLength = 16U << 20;

/// What a worker says of a request, in its response's header.
enum class Status : std::uint32_t {
  ok = 0,
  bad_length = 1,  ///< the request's length is over the channel's limit
};

/// Vectors of a packed message of `length` bytes, the header's included.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t vectors_for(std::uint32_t length) {
  return 1 + (length + kVectorData - 1) / kVectorData;
}

/// One side's wish to be woken. The waiting side arms it and looks for work once more before it
/// sleeps; the other looks at it after each batch of work it handed over.
struct alignas(128) Doorbell {
  std::uint32_t armed;
};

/// The front of a channel's memory. Not part of the data path's protocol: a slot is valid by its
/// own turns alone.
struct ChannelHeader {
  /// Requests whose responses the server has taken: where a worker that attaches starts to look.
  /// Written by the server alone.
  alignas(128) std::uint64_t consumed;
  Doorbell requests;   ///< armed by the worker, rung by the server
  Doorbell responses;  ///< armed by the server, rung by the worker
};
static_assert(sizeof(ChannelHeader) == 384);

/// Where things are in a channel's memory: a pure function of depth and longest message.
struct ChannelLayout {
  std::uint32_t depth;  ///< slots, a power of two
  std::uint32_t depth_log2;
  std::uint32_t max_length;  ///< payload bytes of a message
  std::uint32_t vectors;     ///< that a part holds
  std::uint64_t part_stride;
  std::uint64_t requests;   ///< offset of the first request part
  std::uint64_t responses;  ///< offset of the first response part
  std::uint64_t bytes;      ///< of the whole

  OFFLOAD_HOST_DEVICE std::uint32_t slot_of(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>(sequence) & (depth - 1);
  }
  /// The commit word of message `sequence`: its lap, from 1, so that fresh memory is "nothing yet".
  OFFLOAD_HOST_DEVICE std::uint32_t turn_of(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>(sequence >> depth_log2) + 1;
  }
};

/// Whether a channel can be made like that: depth a power of two of 1 to kMaxDepth, messages of at
/// most kMaxMessageLength.
constexpr bool is_valid_shape(std::uint32_t depth, std::uint32_t max_length) {
  return depth != 0 && depth <= kMaxDepth && (depth & (depth - 1)) == 0 &&
         max_length <= kMaxMessageLength;
}

/// The layout for a valid shape.
constexpr ChannelLayout make_layout(std::uint32_t depth, std::uint32_t max_length) {
  constexpr std::uint64_t kPage = 4096;
  const auto round_up = [](std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
  };
  ChannelLayout layout{};
  layout.depth = depth;
  while ((1U << layout.depth_log2) < depth) ++layout.depth_log2;
  // A digest may be longer than the longest request: room for a few vectors is always there.
  layout.max_length = max_length < 4 * kVectorData ? 4 * kVectorData : max_length;
  const bool all_packed = layout.max_length <= kMaxPacked;
  layout.vectors = all_packed ? vectors_for(layout.max_length) : kMaxVectors;
  layout.part_stride = round_up(layout.vectors * sizeof(Vector), kPartAlignment) +
                       (all_packed ? 0 : round_up(layout.max_length + kSlack, kPartAlignment));
  layout.requests = round_up(sizeof(ChannelHeader), kPartAlignment);
  layout.responses = layout.requests + depth * layout.part_stride;
  layout.bytes = round_up(layout.responses + depth * layout.part_stride, kPage);
  return layout;
}

/// One direction of one slot.
struct Part {
  Vector* vectors;
  std::uint8_t* plain;  ///< room for max_length bytes and slack; meaningless if all are packed
};

/// A channel's memory, as mapped by whoever holds this. Slots are picked by masking: no value that
/// a peer sends can move a pointer out of the memory.
struct Channel {
  std::uint8_t* base;
  ChannelLayout layout;

  OFFLOAD_HOST_DEVICE Part request(std::uint64_t sequence) const {
    return part(layout.requests, sequence);
  }
  OFFLOAD_HOST_DEVICE Part response(std::uint64_t sequence) const {
    return part(layout.responses, sequence);
  }
  ChannelHeader& header() const { return *reinterpret_cast<ChannelHeader*>(base); }

 private:
  OFFLOAD_HOST_DEVICE Part part(std::uint64_t first, std::uint64_t sequence) const {
    std::uint8_t* at = base + first + layout.slot_of(sequence) * layout.part_stride;
    return {reinterpret_cast<Vector*>(at), at + kMaxVectors * sizeof(Vector)};
  }
};
static_assert(kMaxVectors * sizeof(Vector) % kPartAlignment == 0);

}  // namespace offload::kernels
