#pragma once

#include <cstdint>

#include "kernels/packets/queue.hpp"
#include "kernels/rdma/ethernet.hpp"

/// A queue of an Ethernet port in the formats of mlx5 cards, with the functions of queue.hpp: the
/// send and receive queue of a queue pair for raw packets, which the caller posts to and polls
/// without a driver.
///
/// Free frames for receiving wait in a separate ring (`fill`), to which any thread returns them;
/// the receiver posts them to the card. So frames can move from queues of AF_XDP to those of cards
/// and back, and each returns to its home in the end.
namespace offload::kernels::packets {

/// Used only by the receiver; zero at first. In memory of the receiver.
struct alignas(64) CardReceives {
  std::uint32_t posted;  ///< receives
  std::uint64_t error;   ///< of the first that failed, as rdma::QueueError's word; any may read it
};

struct CardQueue {
  rdma::SharedQueue send;
  std::uint64_t* sent;  ///< for each block of the ring: of the frame that is sent by it
  rdma::ReceiveQueue receive;
  CardReceives* receives;
  std::uint64_t* posted;  ///< for each entry of the ring: the frame to be received into
  FrameRing fill;         ///< the home of frames to be received into; this queue's owner takes them
  FrameRing free_frames;  ///< to be sent; this queue's owner takes them
  Frames frames;
  std::uint64_t card_address;  ///< of the frames' first byte, as the card sees it
  std::uint32_t lkey;
  std::uint32_t inline_bytes;  ///< that the card wants: rdma::kMostInlineHeader at most
};

namespace detail {

OFFLOAD_HOST_DEVICE inline const rdma::Cqe& received_cqe(const CardQueue& queue,
                                                         std::uint32_t position) {
  const rdma::CompletionQueue& completions = queue.receive.completions;
  return completions.entries[position & ((1U << completions.log2) - 1)];
}

/// Posts as many free frames as there is room for.
template <class Group>
OFFLOAD_HOST_DEVICE void post_frames(const Group& group, const CardQueue& queue,
                                     std::uint32_t received) {
  const std::uint32_t mask = queue.receive.entries - 1;
  std::uint32_t position = group.from_first(group.lane() == 0 ? queue.receives->posted : 0);
  const std::uint32_t begin = position;
  for (std::uint32_t count = group.size(); count == group.size();) {
    const std::uint32_t room = queue.receive.entries - (position - received);
    std::uint64_t frame = 0;
    count = room == 0 ? 0 : take_frames(group, queue.fill, room, frame);
    if (group.lane() < count) {
      const std::uint32_t at = (position + group.lane()) & mask;
      queue.posted[at] = frame;
      rdma::store_segment(
          queue.receive.ring[at],
          rdma::data_segment({queue.card_address + frame, queue.frames.frame_bytes, queue.lkey}));
    }
    position += count;
  }
  if (position == begin) return;
  group.sync();  // the release below is of all lanes' entries
  if (group.lane() == 0) {
    queue.receives->posted = position;
    rdma::store_record(queue.receive.record, position & 0xffffU);
  }
}

/// Returns the number of completed receives, up to `most`.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t count_received(const Group& group, const CardQueue& queue,
                                                 std::uint32_t received, std::uint32_t most) {
  // No more than can come: each place that a lane looks at is a read over PCIe.
  const std::uint32_t under_way =
      group.from_first(group.lane() == 0 ? queue.receives->posted : 0) - received;
  if (most > under_way) most = under_way;
  std::uint32_t count = 0;
  for (std::uint32_t found = group.size(); found == group.size() && count < most;) {
    const std::uint32_t i = count + group.lane();
    rdma::Completion completion{};
    found = rdma::leading(group, i < most && rdma::poll_completion(queue.receive.completions,
                                                                   received + i, completion));
    count += found;
  }
  return count;
}

}  // namespace detail

/// The same as for Queue. Posts free frames to the card before each poll.
template <class Group>
OFFLOAD_HOST_DEVICE FrameBatch receive(const Group& group, const CardQueue& queue,
                                       std::uint32_t received, std::uint32_t most,
                                       const WaitLimit& limit) {
  Wait wait(limit);
  for (;;) {
    detail::post_frames(group, queue, received);
    const std::uint32_t count = detail::count_received(group, queue, received, most);
    if (count != 0) {
      group.sync();  // each lane acquired what it looked at
      return {received, count};
    }
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return {received, 0};
  }
}

/// The same as for Queue. `data` is null also for a receive that failed, for a completion longer
/// than a frame, and for one that is not the oldest receive's: the card then keeps that frame for
/// ever.
OFFLOAD_HOST_DEVICE inline EthernetFrame frame_at(const CardQueue& queue, const FrameBatch& batch,
                                                  std::uint32_t i) {
  const std::uint32_t position = batch.begin + i;
  const rdma::Completion completion = rdma::read_cqe(detail::received_cqe(queue, position));
  if (completion.counter != (position & 0xffffU)) return {nullptr, 0, ~std::uint64_t{0}};
  const std::uint64_t frame = queue.posted[position & (queue.receive.entries - 1)];
  if (completion.kind != rdma::CqeKind::received_send ||
      completion.byte_count > queue.frames.frame_bytes) {
    return {nullptr, 0, frame};
  }
  return {queue.frames.bytes + frame,
          completion.byte_count,
          frame,
          completion.time,
          rdma::ip_is_right(completion),
          rdma::transport_is_right(completion)};
}

OFFLOAD_HOST_DEVICE inline void note_bad_entry(const CardQueue& queue, const FrameBatch& batch,
                                               std::uint32_t i) {
  rdma::Completion completion = rdma::read_cqe(detail::received_cqe(queue, batch.begin + i));
  if (!completion.is_error()) completion.syndrome = rdma::Syndrome::bad_response;
  // Any of several lanes may be the first: entries after an error are flushed.
  if (rdma::load_acquire(&queue.receives->error) == 0) {
    rdma::store_release(&queue.receives->error, rdma::QueueError::of(completion).word);
  }
}

OFFLOAD_HOST_DEVICE inline void free_entries(const CardQueue& queue, std::uint32_t received) {
  rdma::free_completions(queue.receive.completions, received);
}

OFFLOAD_HOST_DEVICE inline WorkResult after_bad_entry(const CardQueue&) {
  return WorkResult::failed;
}

/// Returns frames whose sending is completed to their homes; does nothing while another group does
/// so. Returns the number of frames.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t recycle(const Group& group, const CardQueue& queue,
                                          const WaitLimit& limit) {
  rdma::SharedSendState& state = *queue.send.state;
  rdma::TakenCompletions taken{};
  bool mine = false;
  // One group at a time; the exchange acquires what the one before has released.
  if (group.lane() == 0) mine = rdma::exchange_seq_cst(&state.looking, 1) == 0;
  if (group.from_first(mine ? 1 : 0) == 0) return 0;
  if (group.lane() == 0) taken = rdma::poll_completions(queue.send);
  const std::uint64_t begin = from_first_64(group, taken.before);
  const auto count = group.from_first(static_cast<std::uint32_t>(taken.end - taken.before));
  group.sync();  // lane 0 acquired for all
  for (std::uint32_t base = 0; base < count; base += group.size()) {
    const bool has_one = base + group.lane() < count;
    std::uint64_t frame = 0;
    if (has_one) {
      frame = queue.sent[(begin + base + group.lane()) & (queue.send.queue.ring.blocks - 1)];
    }
    if (give_back(group, queue.frames, has_one, frame, limit) != WorkResult::done) break;
  }
  group.sync();  // all have read theirs, which the next owner of the blocks writes
  if (group.lane() == 0) {
    rdma::free_blocks(queue.send, taken);
    rdma::store_release(&state.looking, 0);
  }
  return count;
}

/// The same as for Queue. Waits for room within the limit, because abandoned entries use some, too.
/// WorkResult::failed: the queue is in error.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult reserve(const Group& group, const CardQueue& queue,
                                       std::uint32_t count, const WaitLimit& limit,
                                       std::uint64_t& position) {
  Wait wait(limit);
  for (;;) {
    const WorkResult result = rdma::reserve(group, queue.send, count, position);
    if (result != WorkResult::pending) return result;
    if (recycle(group, queue, limit) == 0 && group.from_first(wait.is_over() ? 1 : 0) != 0) {
      return WorkResult::timed_out;
    }
  }
}

/// The same as for Queue, but without waiting for other threads: the one that fills a gap hands the
/// entries behind it to the card. `options` of the descriptor: checksums for the card to write, of
/// rdma::ChecksumFlag. Skips a packet that is in no frame, or is not a frame.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult send_at(const Group& group, const CardQueue& queue,
                                       std::uint64_t position, bool has_one,
                                       const FrameDescriptor& packet, const WaitLimit&) {
  std::uint32_t before = 0;
  const std::uint32_t count = sum_of(group, has_one ? 1U : 0U, before);
  if (count == 0) return WorkResult::done;
  if (has_one) {
    const rdma::SendQueue& send = queue.send.queue;
    const std::uint64_t at = position + before;
    // The last one completes all of them.
    const auto flags = static_cast<std::uint8_t>(before + 1 == count ? rdma::kSignaled : 0);
    queue.sent[at & (send.ring.blocks - 1)] = packet.address;
    if (!queue.frames.holds(packet) || packet.length < rdma::kLeastFrame) {
      rdma::write_no_entry(send.ring, at, send.number, flags);
    } else {
      rdma::RawWork work;
      work.frame = {queue.card_address + packet.address, packet.length, queue.lkey};
      work.bytes = queue.frames.bytes + packet.address;
      work.inline_bytes = queue.inline_bytes;
      work.flags = flags;
      work.checksums = static_cast<std::uint8_t>(packet.options &
                                                 (rdma::kIpChecksum | rdma::kTransportChecksum));
      rdma::write_raw_entry(send.ring, at, send.number, work);
    }
  }
  rdma::publish(group, queue.send, position, position + count, 1);
  return WorkResult::done;
}

}  // namespace offload::kernels::packets
