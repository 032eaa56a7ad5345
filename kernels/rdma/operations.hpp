#pragma once

#include <cstdint>

#include "kernels/rdma/exclusive_queue.hpp"
#include "kernels/rdma/shared_queue.hpp"

/// Operations that a thread, a warp or a block posts together, on its own queue (ExclusiveQueue) or
/// on a shared one (SharedQueue): every lane of the group calls them with the same arguments. A
/// ticket is the position of an entry, for a wait.
namespace offload::kernels::rdma {

/// Stores 16 bytes in one access, which a card reads fastest over PCIe.
OFFLOAD_HOST_DEVICE inline void store_segment(Segment& to, const Segment& segment) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<uint4*>(&to) =
      make_uint4(segment.words[0], segment.words[1], segment.words[2], segment.words[3]);
#else
  to = segment;
#endif
}

/// Calls reserve(), and takes completions while there is no room, until the limit.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult reserve_within(const Group& group, Queue& queue,
                                              std::uint32_t blocks, const WaitLimit& limit,
                                              std::uint64_t& position) {
  Wait wait(limit);
  for (;;) {
    const WorkResult result = reserve(group, queue, blocks, position);
    if (result != WorkResult::pending) return result;
    if (look(group, queue) == 0 && group.from_first(wait.is_over() ? 1 : 0) != 0) {
      return WorkResult::timed_out;
    }
  }
}

/// Writes entries of one block from `position` on: four lanes write each entry, 16 bytes each, so
/// that neighbours write whole lines. `make`(i) returns the work of entry i, the same in each lane.
template <class Group, class Make>
OFFLOAD_HOST_DEVICE void fill(const Group& group, const SendQueue& queue, std::uint64_t position,
                              std::uint32_t count, const Make& make) {
  const std::uint32_t part = group.lane() % kSegmentsPerBlock;
  const std::uint32_t step = group.size() / kSegmentsPerBlock;
  for (std::uint32_t i = group.lane() / kSegmentsPerBlock; i < count; i += step) {
    SendWork work = make(i);
    if (i + 1 == count) work.flags |= kSignaled;
    const std::uint32_t segments = segments_of(work);
    if (part >= segments) continue;
    store_segment(queue.ring.at(position + i, part),
                  segment_at(position + i, queue.number, segments, work, part));
  }
}

/// Computes the blocks of all entries, and of the last one. Returns false if one is too long: a
/// single thread may post entries of several blocks, a group only entries of one.
template <class Group, class Make>
OFFLOAD_HOST_DEVICE bool measure(const Group& group, std::uint32_t count, const Make& make,
                                 std::uint32_t& blocks, std::uint32_t& last_blocks) {
  if (group.size() > 1) {
    bool fits = true;
    for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
      fits = fits && segments_of(make(i)) <= kSegmentsPerBlock;
    }
    blocks = count;
    last_blocks = 1;
    return group.all(fits);
  }
  blocks = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t segments = segments_of(make(i));
    if (segments > kMostSegments) return false;
    blocks += last_blocks = blocks_of(segments);
  }
  return true;
}

/// Posts `count` operations with one doorbell; `make`(i) returns the work of operation i. The last
/// one is always signaled, so that its blocks become free again. Waits for room until the limit.
/// `ticket`: that of the last one.
template <class Group, class Queue, class Make>
OFFLOAD_HOST_DEVICE WorkResult post(const Group& group, Queue& queue, std::uint32_t count,
                                    const Make& make, const WaitLimit& limit,
                                    std::uint64_t& ticket) {
  const SendQueue& handle = handle_of(queue);
  std::uint32_t blocks = 0;
  std::uint32_t last_blocks = 0;
  if (count == 0 || count > handle.ring.blocks) return WorkResult::invalid;
  if (!measure(group, count, make, blocks, last_blocks)) return WorkResult::invalid;
  std::uint64_t position = 0;
  const WorkResult result = reserve_within(group, queue, blocks, limit, position);
  if (result != WorkResult::done) return result;
  if (group.size() > 1) {
    fill(group, handle, position, count, make);
  } else {
    std::uint64_t at = position;
    for (std::uint32_t i = 0; i < count; ++i) {
      SendWork work = make(i);
      if (i + 1 == count) work.flags |= kSignaled;
      const std::uint32_t segments = segments_of(work);
      write_entry(handle.ring, at, handle.number, segments, work);
      at += blocks_of(segments);
    }
  }
  publish(group, queue, position, position + blocks, last_blocks);
  ticket = position + blocks - last_blocks;
  return WorkResult::done;
}

/// Posts one operation.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult post(const Group& group, Queue& queue, const SendWork& work,
                                    const WaitLimit& limit, std::uint64_t& ticket) {
  return post(
      group, queue, 1, [&work](std::uint32_t) { return work; }, limit, ticket);
}

/// Waits for the operation of the ticket and all earlier ones. WorkResult::failed: the queue is in
/// error, and error_of() returns the reason, which may be that of a later operation.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult wait_for(const Group& group, Queue& queue, std::uint64_t ticket,
                                        const WaitLimit& limit) {
  Wait wait(limit);
  for (;;) {
    // In this order: an entry that failed is completed after its error is there.
    const bool completed = is_completed(group, queue, ticket);
    if (error_of(group, queue)) return WorkResult::failed;
    if (completed) return WorkResult::done;
    if (look(group, queue) == 0 && group.from_first(wait.is_over() ? 1 : 0) != 0) {
      return WorkResult::timed_out;
    }
  }
}

/// Posts an operation and waits for it, within one limit each.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult post_and_wait(const Group& group, Queue& queue, const SendWork& work,
                                             const WaitLimit& limit) {
  std::uint64_t ticket = 0;
  const WorkResult result = post(group, queue, work, limit, ticket);
  return result == WorkResult::done ? wait_for(group, queue, ticket, limit) : result;
}

}  // namespace offload::kernels::rdma
