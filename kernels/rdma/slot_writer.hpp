#pragma once

#include <cstdint>

#include "kernels/message.hpp"
#include "kernels/rdma/operations.hpp"

/// Slots of a channel, written into the same slots of a channel on another machine by RDMA: what a
/// worker does with its responses that posts them itself.
///
/// A fabric may place the writes of a queue pair in another order than they were posted (adaptive
/// routing), and within one write no more than eight aligned bytes are relied on to be seen at
/// once. So a write does not make a slot valid:
///
/// - A response's last write has an immediate, the slot's number. It completes at the server when
///   all that was posted before it is in memory. It writes the header without its flag, and the
///   server sets the flag (set_flag()).
/// - A request's flag is written by an atomic operation on the half of the header that has it, as a
///   kernel polls memory and no completions. The atomic takes effect after all writes before it.
namespace offload::kernels::rdma {

/// The bytes of a content in its slot, without its header; length 0: none.
struct SlotRest {
  std::uint32_t offset;
  std::uint32_t length;
};

/// Returns the rest of a slot with a message of this header.
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

/// The maximum number of writes of a response: the rest, and the header.
inline constexpr std::uint32_t kMostResponseWrites = 2;

/// The region of one side's slots: its key, and addresses as the device sees them.
struct SlotRegion {
  std::uint64_t address;
  std::uint32_t key;
};

/// The means with which groups of a worker post responses.
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
OFFLOAD_HOST_DEVICE WorkResult write_response(const Group& group, const SlotWriter& writer,
                                              const ChannelView& channel, std::uint64_t sequence,
                                              const Packet& header) {
  const Slot slot = channel.response(sequence);
  const SlotRest rest = rest_of(header);
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(slot.packets) -
                                             channel.responses);
  const LocalBuffer buffer{writer.own.address + at + rest.offset, rest.length, writer.own.key};
  Packet without_flag = header;
  without_flag.flag = 0;
  const std::uint32_t count = rest.length == 0 ? 1 : kMostResponseWrites;
  const auto make = [&](std::uint32_t i) {
    SendWork work;
    work.remote = {writer.peer.address + at, writer.peer.key};
    if (i + 1 != count) {
      work.opcode = Opcode::rdma_write;
      work.remote.address += rest.offset;
      work.buffers = &buffer;
      work.buffer_count = 1;
    } else {
      work.opcode = Opcode::rdma_write_with_imm;
      work.immediate = big_endian(channel.layout.slot_index(sequence));
      work.inline_data = &without_flag;
      work.inline_length = sizeof without_flag;
    }
    return work;
  };
  SharedQueue queue = writer.queue;
  std::uint64_t ticket = 0;
  return post(group, queue, count, make, writer.limit, ticket);
}

/// Makes the response that was written into `slot` valid. Must be called after its immediate has
/// come.
inline void set_flag(const Slot& slot, std::uint32_t flag) {
  Packet header = load_packet(slot.packets);
  header.flag = flag;
  store_packet(slot.packets, header);
}

}  // namespace offload::kernels::rdma
