#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// The layout of a channel's memory, on which server and worker agree byte for byte
/// (docs/reference/wire-protocol.md). It is two regions, as who may write differs: requests are the
/// server's, read-only to the worker; responses are the worker's.
///
///   RequestHeader  | request slots [depth]
///   ResponseHeader | response slots [depth]
///
/// A slot is an array of self-validating 16-byte packets, followed by room for plain bytes. That
/// room does not overlap the packets: otherwise a client's payload could hold what the next lap
/// takes for a valid flag. A slot's content is one message or a batch of short ones
/// (slot_batch.hpp); up to kMaxPacketPayload bytes are in the packets, more are plain.
///
/// Prior art are the packets of GPU collectives: NCCL's LL (8 bytes: 4 of data, 4 of flag) and
/// LL128 (120 of 128 bytes, stored by one warp), mscclpp's LL16Packet (16 bytes: 8 of data, two
/// flags, as RDMA promises it 8 bytes at a time). A packet here has 12 bytes of data and one flag,
/// which takes a 16-byte access that is single-copy atomic on CPU and GPU (channel_packets.hpp).
/// The flag is made of the slot's lap, so no reader clears it; a channel pairs each request slot
/// with a response slot, whose flags together are the whole flow control.
///
/// No packet is ever taken for another lap's. A flag is the lap's lower 31 bits and a one: it is
/// never 0, the value of memory before its first write, and repeats after 2^31 laps. A message
/// writes the header and the packets that it fills, and others keep the flag that they have; but in
/// every kRewriteLaps-th lap a message writes all packets of its slot. Both directions write each
/// slot in each lap, so a packet's flag is at most kRewriteLaps laps old, 8 times less than it
/// takes to repeat; a writer that dies in such a lap skips one of those 8. So a packet with the
/// flag of a lap was written in that lap.
namespace offload::kernels {

/// A self-validating unit of 16 bytes: read and written by one aligned access, so that its data and
/// its flag are never seen apart.
struct alignas(16) Packet {
  std::uint32_t data[3];
  std::uint32_t flag;
};
static_assert(sizeof(Packet) == 16);

/// The number of payload bytes of a packet. Packet 0 is the header: {bytes of the content,
/// ResponseStatus (0 in a request), messages of a batch or 0 if the content is one message}.
inline constexpr std::uint32_t kPacketData = 12;
/// The maximum number of packets of a message: a warp reads them at once, one in each lane, the
/// header and 31 of data.
inline constexpr std::uint32_t kMaxPackets = 32;
/// The longest content in packets, bytes; a longer one is plain.
inline constexpr std::uint32_t kMaxPacketPayload = (kMaxPackets - 1) * kPacketData;
/// Each slot starts on a separate pair of cache lines.
inline constexpr std::uint32_t kSlotAlignment = 128;
/// The number of bytes before and after a payload that may be read but are never used: blocks have
/// 16 bytes.
inline constexpr std::uint32_t kSlack = 16;

inline constexpr std::uint32_t kMaxDepth = 4096;
inline constexpr std::uint32_t kMaxMessageLength = 16U << 20;
/// The number of bytes that every response may have, however short its request, unless the server
/// allows more.
inline constexpr std::uint32_t kLongestDigest = 4 * kPacketData;
/// The maximum number of messages of a batch.
inline constexpr std::uint32_t kMaxBatchCount = 64;
/// The maximum number of bytes of a batch, of its requests and of its responses: that of
/// kMaxBatchCount messages of 64 bytes (docs/internals/performance.md).
inline constexpr std::uint32_t kMaxBatchContent = 5 * 1024;

/// A worker's verdict on a request, in the response's header.
enum class ResponseStatus : std::uint32_t {
  ok = 0,
  bad_length = 1,  ///< the request's length is over the channel's limit, or a batch is invalid
};

/// In one of this number of laps, a message writes all packets of its slot.
inline constexpr std::uint32_t kRewriteLaps = 1U << 28;

/// Returns whether messages with this flag do so.
OFFLOAD_HOST_DEVICE constexpr bool rewrites_slot(std::uint32_t flag) {
  return (flag >> 1) % kRewriteLaps == kRewriteLaps - 1;
}

/// Returns the number of packets of a message of `length` bytes, including the header.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t packets_for(std::uint32_t length) {
  return 1 + (length + kPacketData - 1) / kPacketData;
}

/// Returns the number of packets that a message of `length` bytes fills: only the header if its
/// payload is plain.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t packets_filled(std::uint32_t length) {
  return length <= kMaxPacketPayload ? packets_for(length) : 1;
}

/// A flag by which one side asks to be woken. The side that waits arms it and polls once more
/// before it sleeps; the other side reads it after each batch of work that it posted.
struct alignas(128) Doorbell {
  std::uint32_t armed;
};

/// The front of a channel's requests. The data path does not read it: a slot is valid by its own
/// flags alone.
struct RequestHeader {
  /// Requests whose responses the server has taken. Memory is new with each worker's attachment, so
  /// as that begins this is the first message that the worker looks for.
  alignas(128) std::uint64_t consumed;
};
static_assert(sizeof(RequestHeader) == 128);

/// The front of its responses.
struct ResponseHeader {
  Doorbell requests;   ///< armed by the worker, rung by the server
  Doorbell responses;  ///< armed by the server, rung by the worker
};
static_assert(sizeof(ResponseHeader) == 256);

/// The offsets in a channel's memory: a pure function of depth and longest messages.
struct ChannelLayout {
  std::uint32_t depth;  ///< slots, a power of two
  std::uint32_t depth_log2;
  std::uint32_t max_length;    ///< bytes of a message, in either direction
  std::uint32_t max_content;   ///< bytes of a slot's content
  std::uint32_t max_request;   ///< bytes of a request
  std::uint32_t max_response;  ///< bytes of a response to a request that is shorter
  std::uint64_t slot_stride;
  std::uint64_t request_bytes;   ///< of the region of requests
  std::uint64_t response_bytes;  ///< of the region of responses

  [[nodiscard]] constexpr std::uint64_t bytes() const { return request_bytes + response_bytes; }

  OFFLOAD_HOST_DEVICE std::uint32_t slot_index(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>(sequence) & (depth - 1);
  }
  /// Returns the flag of message `sequence`: odd, and different for each of 2^31 laps.
  OFFLOAD_HOST_DEVICE std::uint32_t flag_of(std::uint64_t sequence) const {
    return (static_cast<std::uint32_t>(sequence >> depth_log2) << 1) | 1U;
  }
};

/// Returns whether a channel can have this shape: a depth that is a power of two from 1 to
/// kMaxDepth, and messages of at most kMaxMessageLength.
constexpr bool is_valid_shape(std::uint32_t depth, std::uint32_t max_request,
                              std::uint32_t max_response = kLongestDigest) {
  return depth != 0 && depth <= kMaxDepth && (depth & (depth - 1)) == 0 &&
         max_request <= kMaxMessageLength && max_response <= kMaxMessageLength;
}

/// Returns the layout for a valid shape.
constexpr ChannelLayout make_layout(std::uint32_t depth, std::uint32_t max_request,
                                    std::uint32_t max_response = kLongestDigest) {
  constexpr std::uint64_t kPage = 4096;
  const auto round_up = [](std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
  };
  ChannelLayout layout{};
  layout.depth = depth;
  while ((1U << layout.depth_log2) < depth) ++layout.depth_log2;
  // A digest may be longer than the longest request.
  layout.max_request = max_request < kLongestDigest ? kLongestDigest : max_request;
  layout.max_response = max_response < kLongestDigest ? kLongestDigest : max_response;
  layout.max_length =
      layout.max_request < layout.max_response ? layout.max_response : layout.max_request;
  layout.max_content = layout.max_length < kMaxBatchContent ? kMaxBatchContent : layout.max_length;
  layout.slot_stride =
      kMaxPackets * sizeof(Packet) + round_up(layout.max_content + kSlack, kSlotAlignment);
  layout.request_bytes = round_up(sizeof(RequestHeader) + depth * layout.slot_stride, kPage);
  layout.response_bytes = round_up(sizeof(ResponseHeader) + depth * layout.slot_stride, kPage);
  return layout;
}

/// One direction of one slot.
struct Slot {
  Packet* packets;

  /// Room for max_content bytes and slack.
  OFFLOAD_HOST_DEVICE std::uint8_t* plain() const {
    return reinterpret_cast<std::uint8_t*>(packets + kMaxPackets);
  }
};

/// A channel's memory at the addresses where its holder maps it. Slots are found by masking: no
/// value that a peer sends can move a pointer out of the memory.
struct ChannelView {
  std::uint8_t* requests;  ///< a worker must not write there
  std::uint8_t* responses;
  ChannelLayout layout;

  OFFLOAD_HOST_DEVICE Slot request(std::uint64_t sequence) const {
    return slot(requests + sizeof(RequestHeader), sequence);
  }
  OFFLOAD_HOST_DEVICE Slot response(std::uint64_t sequence) const {
    return slot(responses + sizeof(ResponseHeader), sequence);
  }
  [[nodiscard]] RequestHeader& request_header() const {
    return *reinterpret_cast<RequestHeader*>(requests);
  }
  [[nodiscard]] ResponseHeader& response_header() const {
    return *reinterpret_cast<ResponseHeader*>(responses);
  }

 private:
  OFFLOAD_HOST_DEVICE Slot slot(std::uint8_t* first, std::uint64_t sequence) const {
    std::uint8_t* at = first + layout.slot_index(sequence) * layout.slot_stride;
    return {reinterpret_cast<Packet*>(at)};
  }
};
static_assert(kMaxPackets * sizeof(Packet) % kSlotAlignment == 0);

}  // namespace offload::kernels
