#pragma once

#include <cstdint>

#include "kernels/packets/frames.hpp"

/// A queue of an Ethernet port: one AF_XDP socket. One thread, warp or block receives from it; any
/// number may send. Every lane of a group must call its functions, with the same arguments except
/// those of the lane.
///
/// A queue of a card (card_queue.hpp) has the same functions by overload, and templates of the
/// queue's type work with both.
namespace offload::kernels::packets {

struct Queue {
  Ring<FrameDescriptor> receive;
  Ring<FrameDescriptor> send;
  RingOrder* send_order;
  FrameRing free_frames;  ///< to be sent; this queue's owner takes them
  FrameRing completions;  ///< of the hardware queue, which several of these may share
  Frames frames;
};

/// A received Ethernet frame.
struct EthernetFrame {
  std::uint8_t* data = nullptr;  ///< null for none
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  // Set by a card; not by AF_XDP.
  std::uint64_t time = 0;    ///< when it came, by the card's clock and in its unit; 0: not told
  bool ip_is_right = false;  ///< the card looked at the IP header's checksum
  bool transport_is_right = false;  ///< and at that of UDP or TCP
};

/// Received frames that finish() has not processed yet.
struct FrameBatch {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

/// The further use of a received packet.
enum class Verdict : std::uint32_t {
  drop,  ///< its frame goes back to be received into
  send,  ///< it is sent from the queue that finish() is told
  keep,  ///< its frame is the caller's, who gives it back or sends it
};

/// Looks for up to `most` packets, until there is one or the limit is reached. `received`: entries
/// of this queue that were finished, which finish() counts.
template <class Group>
OFFLOAD_HOST_DEVICE FrameBatch receive(const Group& group, const Queue& queue,
                                       std::uint32_t received, std::uint32_t most,
                                       const WaitLimit& limit) {
  Wait wait(limit);
  for (;;) {
    std::uint32_t count = 0;
    // Pairs with the driver's release of the descriptors and of the contents of the frames.
    if (group.lane() == 0) count = take_position(queue.receive.producer, received) - received;
    count = group.from_first(count);
    if (count != 0) {
      group.sync();  // lane 0 acquired for all
      return {received, count < most ? count : most};
    }
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return {received, 0};
  }
}

/// Returns frame `i` of a batch; its `data` is null if its descriptor points outside the frames.
OFFLOAD_HOST_DEVICE inline EthernetFrame frame_at(const Queue& queue, const FrameBatch& batch,
                                                  std::uint32_t i) {
  const FrameDescriptor found = queue.receive.at(batch.begin + i);
  if (!queue.frames.holds(found)) return {nullptr, 0, found.address};
  return {queue.frames.bytes + found.address, found.length, found.address};
}

/// Reserves positions for `count` packets that the group sends by send_at(). Packets are sent in
/// the order of these calls, no matter which group is ready first; a position that is not used
/// blocks all later ones. There is always room (see Frames).
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult reserve(const Group& group, const Queue& queue, std::uint32_t count,
                                       const WaitLimit&, std::uint64_t& position) {
  position = reserve(group, *queue.send_order, count);
  return WorkResult::done;
}

/// Sends the packets of the lanes that have one, in the order of lanes, from `position` on, which
/// the group has reserved (reserve()) for as many; a lane without one has `has_one` false. Earlier
/// writes to the frames come first. Sent means given to the driver, which may need to be woken
/// (kNeedWakeup).
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult send_at(const Group& group, const Queue& queue,
                                       std::uint64_t position, bool has_one,
                                       const FrameDescriptor& packet, const WaitLimit& limit) {
  std::uint32_t before = 0;
  const std::uint32_t count = sum_of(group, has_one ? 1U : 0U, before);
  if (count == 0) return WorkResult::done;
  if (has_one) queue.send.at(static_cast<std::uint32_t>(position) + before) = packet;
  return publish_in_order(group, queue.send.producer, *queue.send_order, position, count, limit);
}

/// Reserves the next positions, and calls send_at().
template <class Group, class AnyQueue>
OFFLOAD_HOST_DEVICE WorkResult send(const Group& group, const AnyQueue& queue, bool has_one,
                                    const FrameDescriptor& packet, const WaitLimit& limit) {
  std::uint32_t before = 0;
  const std::uint32_t count = sum_of(group, has_one ? 1U : 0U, before);
  if (count == 0) return WorkResult::done;
  std::uint64_t position = 0;
  const WorkResult result = reserve(group, queue, count, limit, position);
  return result == WorkResult::done ? send_at(group, queue, position, has_one, packet, limit)
                                    : result;
}

/// Returns a descriptor that the driver skips, for positions that were reserved without a packet.
OFFLOAD_HOST_DEVICE inline FrameDescriptor nothing_to_send() {
  return {~std::uint64_t{0}, 1, 0};
}

/// Returns frames that were sent to their homes. Returns the number of frames.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t recycle(const Group& group, const Queue& queue,
                                          const WaitLimit& limit) {
  return recycle(group, queue.frames, queue.completions, limit);
}

/// Records that entry `i` of a batch is invalid. Linux writes no such entry.
OFFLOAD_HOST_DEVICE inline void note_bad_entry(const Queue&, const FrameBatch&, std::uint32_t) {}

/// Gives the entries before `received` back, by one lane.
OFFLOAD_HOST_DEVICE inline void free_entries(const Queue& queue, std::uint32_t received) {
  publish_position(queue.receive.consumer, received);
}

/// Returns the result of finish() after an invalid entry: the queue continues.
OFFLOAD_HOST_DEVICE inline WorkResult after_bad_entry(const Queue&) {
  return WorkResult::done;
}

/// Calls `decide`(packet) for each packet of the batch, one in each lane; it returns a Verdict, and
/// may change the packet and its `length`. Then frees each frame, sends it from `to` or keeps it,
/// as the verdict says, and gives the batch's entries back. `to`: the queue itself, or another one
/// of the same Frames, of any kind. Adds the batch to `received`. WorkResult::failed: only for a
/// card's queue, which is in error.
template <class Group, class From, class To, class Decide>
OFFLOAD_HOST_DEVICE WorkResult finish(const Group& group, const From& queue, const To& to,
                                      std::uint32_t& received, const FrameBatch& batch,
                                      const WaitLimit& limit, const Decide& decide) {
  bool whole = true;
  for (std::uint32_t base = 0; base < batch.count; base += group.size()) {
    const std::uint32_t i = base + group.lane();
    EthernetFrame packet;
    Verdict verdict = Verdict::keep;
    if (i < batch.count) {
      packet = frame_at(queue, batch, i);
      if (packet.data == nullptr) {
        whole = false;
        note_bad_entry(queue, batch, i);
      }
      verdict = packet.data == nullptr ? Verdict::drop : decide(packet);
    }
    WorkResult result =
        send(group, to, verdict == Verdict::send, {packet.address, packet.length, 0}, limit);
    if (result == WorkResult::done) {
      result = give_back(group, queue.frames, verdict == Verdict::drop, packet.address, limit);
    }
    if (result != WorkResult::done) return result;
  }
  received += batch.count;
  whole = group.all(whole);
  group.sync();  // all have read the entries
  if (group.lane() == 0 && batch.count != 0) free_entries(queue, received);
  return whole ? WorkResult::done : after_bad_entry(queue);
}

/// Sends up to `most` packets, each in a free frame of the queue; `write`(bytes, i) makes packet i
/// in `frame_bytes` bytes and returns its length. Waits for a free frame, within the limit. Returns
/// the number of packets sent: 0 if there was no free frame, or the queue is in error. Only one
/// group of a queue may call it.
template <class Group, class AnyQueue, class Write>
OFFLOAD_HOST_DEVICE std::uint32_t send_new(const Group& group, const AnyQueue& queue,
                                           std::uint32_t most, const WaitLimit& limit,
                                           const Write& write) {
  Wait wait(limit);
  for (;;) {
    std::uint64_t frame = 0;
    const std::uint32_t count = take_frames(group, queue.free_frames, most, frame);
    if (count != 0) {
      const bool has_one = group.lane() < count;
      std::uint64_t position = 0;
      if (reserve(group, queue, count, limit, position) != WorkResult::done) {
        give_back(group, queue.frames, has_one, frame, limit);
        return 0;
      }
      FrameDescriptor packet{frame, 0, 0};
      if (has_one) packet.length = write(queue.frames.bytes + frame, group.lane());
      const WorkResult sent = send_at(group, queue, position, has_one, packet, limit);
      return sent == WorkResult::done ? count : 0;
    }
    if (recycle(group, queue, limit) == 0 && group.from_first(wait.is_over() ? 1 : 0) != 0) {
      return 0;
    }
  }
}

}  // namespace offload::kernels::packets
