#pragma once

#include <cstdint>

#include "kernels/message.hpp"
#include "kernels/rdma/operations.hpp"

/// Slots of a channel, written into the same slots of a channel on another machine by RDMA writes:
/// what a worker does with its responses that posts them itself.
///
/// The peer polls its slot as it polls one in shared memory, so the bytes that make the content
/// valid come last. All writes of a queue pair are done in their order; within one, no more than
/// eight aligned bytes are relied on to be seen at once. So the header, 16 bytes, goes in two
/// writes, the half with the flag behind the other.
namespace offload::kernels::rdma {

/// What a content has beside its header: bytes of its slot; a length of 0: nothing.
struct SlotRest {
  std::uint32_t offset;
  std::uint32_t length;
};

/// Of a slot that a message with this header was written into.
OFFLOAD_HOST_DEVICE inline SlotRest rest_of(const Packet& header) {
  constexpr std::uint32_t kPacket = sizeof(Packet);
  const std::uint32_t length = header.data[0];
  const bool is_plain = length > kMaxPacketPayload;
  if (rewrites_slot(header.flag)) {
    return {kPacket, (kMaxPackets - 1) * kPacket + (is_plain ? length : 0)};
  }
  if (is_plain) return {kMaxPackets * kPacket, length};
  return {kPacket, (packets_for(length) - 1) * kPacket};
}

/// Writes of a slot: the rest, and the halves of the header.
inline constexpr std::uint32_t kMostSlotWrites = 3;

/// The regions of one side's slots, as their key and their addresses at the device.
struct SlotRegion {
  std::uint64_t address;
  std::uint32_t key;
};

/// What a worker's groups post responses with.
struct SlotWriter {
  SharedQueue queue;
  SlotRegion own;   ///< the region of responses that they are written from
  SlotRegion peer;  ///< the same of the server
  WaitLimit limit;  ///< for room in the queue; ends with a queue in error at once
};

/// Posts the writes of response `sequence`, which was published in its own slot with `header`.
/// Called by every lane of the group that did, or of a part of it, with the same arguments,
/// synchronised. The slot is the card's until the server posts its next request there.
template <class Group>
OFFLOAD_HOST_DEVICE Result write_response(const Group& group, const SlotWriter& writer,
                                          const ChannelView& channel, std::uint64_t sequence,
                                          const Packet& header) {
  constexpr std::uint32_t kHalf = sizeof(Packet) / 2;
  const Slot slot = channel.response(sequence);
  const SlotRest rest = rest_of(header);
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(slot.packets) -
                                             channel.responses);
  const LocalBuffer buffer{writer.own.address + at + rest.offset, rest.length, writer.own.key};
  const std::uint32_t first = rest.length == 0 ? 1 : 0;
  const auto make = [&](std::uint32_t i) {
    SendWork work;
    work.opcode = Opcode::rdma_write;
    work.remote = {writer.peer.address + at, writer.peer.key};
    if (i + first == 0) {
      work.remote.address += rest.offset;
      work.buffers = &buffer;
      work.buffer_count = 1;
    } else {
      const std::uint32_t half = i + first - 1;
      work.remote.address += half * kHalf;
      work.inline_data = reinterpret_cast<const std::uint8_t*>(&header) + half * kHalf;
      work.inline_length = kHalf;
    }
    return work;
  };
  SharedQueue queue = writer.queue;
  std::uint64_t ticket = 0;
  return post(group, queue, kMostSlotWrites - first, make, writer.limit, ticket);
}

}  // namespace offload::kernels::rdma
