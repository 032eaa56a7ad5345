#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/platform.hpp"

/// The memory of a channel: what server and worker agree on, byte for byte (docs/wire-protocol.md).
///
///   ChannelHeader | request slots [depth] | response slots [depth]
///
/// A slot is an array of self-validating 16-byte packets, followed, where the channel takes
/// messages too long for that, by room for a plain payload. The plain payload has room of its own:
/// were it laid over the packets, a stranger's payload could hold what the next lap takes for a
/// valid flag.
namespace offload::kernels {

/// The unit of the self-validating form: read and written by one aligned 16-byte access, so that
/// its data and its flag are never seen apart.
struct alignas(16) Packet {
  std::uint32_t data[3];
  std::uint32_t flag;
};
static_assert(sizeof(Packet) == 16);

/// Payload bytes of a packet. Packet 0 is the header: {length in bytes, Status (0 in a request),
/// 0}.
inline constexpr std::uint32_t kPacketData = 12;
/// A message's packets are read by the lanes of one warp in one go: the header's and 31 of data.
inline constexpr std::uint32_t kMaxPackets = 32;
/// The longest payload in packets; a longer one is plain.
inline constexpr std::uint32_t kMaxPacketPayload = (kMaxPackets - 1) * kPacketData;
/// Parts start on their own pair of cache lines.
inline constexpr std::uint32_t kSlotAlignment = 128;
/// Bytes that may be read, never used, before and after a payload: blocks are 16 bytes.
inline constexpr std::uint32_t kSlack = 16;

inline constexpr std::uint32_t kMaxDepth = 4096;
inline constexpr std::uint32_t kMaxMessageLength = 16U << 20;

/// What a worker says of a request, in its response's header.
enum class Status : std::uint32_t {
  ok = 0,
  bad_length = 1,  ///< the request's length is over the channel's limit
};

/// Packets of a packed message of `length` bytes, the header's included.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t packets_for(std::uint32_t length) {
  return 1 + (length + kPacketData - 1) / kPacketData;
}

/// One side's wish to be woken. The waiting side arms it and looks for work once more before it
/// sleeps; the other looks at it after each batch of work it handed over.
struct alignas(128) Doorbell {
  std::uint32_t armed;
};

/// The front of a channel's memory. Not part of the data path's protocol: a slot is valid by its
/// own flags alone.
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
  std::uint32_t packets;     ///< that a slot holds
  std::uint64_t slot_stride;
  std::uint64_t requests;   ///< offset of the first request slot
  std::uint64_t responses;  ///< offset of the first response slot
  std::uint64_t bytes;      ///< of the whole

  OFFLOAD_HOST_DEVICE std::uint32_t slot_index(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>(sequence) & (depth - 1);
  }
  /// The commit word of message `sequence`: its lap, from 1, so that fresh memory is "nothing yet".
  OFFLOAD_HOST_DEVICE std::uint32_t flag_of(std::uint64_t sequence) const {
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
  // A digest may be longer than the longest request: room for a few packets is always there.
  layout.max_length = max_length < 4 * kPacketData ? 4 * kPacketData : max_length;
  const bool all_packets = layout.max_length <= kMaxPacketPayload;
  layout.packets = all_packets ? packets_for(layout.max_length) : kMaxPackets;
  layout.slot_stride = round_up(layout.packets * sizeof(Packet), kSlotAlignment) +
                       (all_packets ? 0 : round_up(layout.max_length + kSlack, kSlotAlignment));
  layout.requests = round_up(sizeof(ChannelHeader), kSlotAlignment);
  layout.responses = layout.requests + depth * layout.slot_stride;
  layout.bytes = round_up(layout.responses + depth * layout.slot_stride, kPage);
  return layout;
}

/// One direction of one slot.
struct Slot {
  Packet* packets;
  std::uint8_t* plain;  ///< room for max_length bytes and slack; meaningless if all are packed
};

/// A channel's memory, as mapped by whoever holds this. Slots are picked by masking: no value that
/// a peer sends can move a pointer out of the memory.
struct ChannelView {
  std::uint8_t* base;
  ChannelLayout layout;

  OFFLOAD_HOST_DEVICE Slot request(std::uint64_t sequence) const {
    return slot(layout.requests, sequence);
  }
  OFFLOAD_HOST_DEVICE Slot response(std::uint64_t sequence) const {
    return slot(layout.responses, sequence);
  }
  ChannelHeader& header() const { return *reinterpret_cast<ChannelHeader*>(base); }

 private:
  OFFLOAD_HOST_DEVICE Slot slot(std::uint64_t first, std::uint64_t sequence) const {
    std::uint8_t* at = base + first + layout.slot_index(sequence) * layout.slot_stride;
    return {reinterpret_cast<Packet*>(at), at + kMaxPackets * sizeof(Packet)};
  }
};
static_assert(kMaxPackets * sizeof(Packet) % kSlotAlignment == 0);

}  // namespace offload::kernels
