#pragma once

#include <cstdint>

#include "kernels/rdma/queue_error.hpp"
#include "kernels/rdma/queue_pair.hpp"
#include "kernels/rdma/shared_word.hpp"
#include "kernels/rdma/wait.hpp"

/// A send queue that many threads of many blocks post to. A post is
///   reserve()  room is taken from the credits, then a position: two atomic adds
///   fill       entries are written at that position, by any of the group's lanes
///   publish()  the range is marked as filled; if no other thread is publishing, all ranges filled
///              without a gap, other threads' too, are handed to the card
/// No thread waits for another: a range behind a gap is published by the thread that closes the
/// gap. Completions are collapsed to one position up to which all is done; the thread that looks
/// first takes the completions that have come, for all threads.
///
/// All functions are called by every lane of a group, with the same arguments; lane 0 acts.
namespace offload::kernels::rdma {

/// Shared by the threads, zero at first. In their memory, such as the GPU's.
struct alignas(64) SharedSendState {
  alignas(64) std::uint64_t under_way;  ///< blocks that were taken and are not completed
  alignas(64) std::uint64_t reserved;   ///< the next position
  alignas(64) std::uint64_t ringing;    ///< 1: a thread publishes
  std::uint64_t published;              ///< a mark: up to where, and its last entry's blocks
  alignas(64) std::uint64_t looking;    ///< 1: a thread takes completions
  std::uint64_t polled;
  std::uint64_t completed;  ///< up to here blocks are free
  std::uint64_t error;      ///< of the first that failed, as QueueError's word
};

struct SharedQueue {
  SendQueue queue;
  SharedSendState* state;
  std::uint64_t* marks;  ///< one for each block of the ring, zero at first
};

/// A range that is filled: the end in the upper 56 bits, the blocks of its last entry in the lower
/// 8. It lies at the begin of the range, and an older one there has an end that is not beyond it.
OFFLOAD_HOST_DEVICE constexpr std::uint64_t mark_of(std::uint64_t end, std::uint32_t last_blocks) {
  return end << 8 | last_blocks;
}
OFFLOAD_HOST_DEVICE constexpr std::uint64_t end_of(std::uint64_t mark) {
  return mark >> 8;
}
OFFLOAD_HOST_DEVICE constexpr std::uint64_t last_of(std::uint64_t mark) {
  return end_of(mark) - (mark & 0xffU);
}

template <class Group>
OFFLOAD_HOST_DEVICE QueueError error_of(const Group& group, const SharedQueue& queue) {
  std::uint64_t word = 0;
  if (group.lane() == 0) word = load_acquire(&queue.state->error);
  return {group.from_first(static_cast<std::uint32_t>(word))};
}

/// Returns the position of the next entry, if no other thread is faster.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint64_t next_position(const Group& group, const SharedQueue& queue) {
  return from_first_64(group, group.lane() == 0 ? load_acquire(&queue.state->reserved) : 0);
}

/// The same as for an exclusive queue. The caller owns the range and must publish it: later ranges
/// wait for that.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult reserve(const Group& group, const SharedQueue& queue,
                                       std::uint32_t blocks, std::uint64_t& position) {
  SharedSendState& state = *queue.state;
  if (blocks > queue.queue.ring.blocks) return WorkResult::invalid;
  WorkResult result = WorkResult::done;
  std::uint64_t begin = 0;
  if (group.lane() == 0) {
    if (load_acquire(&state.error) != 0) {
      result = WorkResult::failed;
    } else if (fetch_add_acq_rel(&state.under_way, blocks) + blocks > queue.queue.ring.blocks) {
      // Given back: the add that fails must not hold what a shorter one could have.
      fetch_add_acq_rel(&state.under_way, std::uint64_t{0} - blocks);
      result = WorkResult::pending;
    } else {
      // Reserved and uncompleted entries are part of those in flight, so there is room from the
      // position on. Acquire, in the add above: the card has read the blocks that are now reused.
      // Pairs with free_blocks().
      begin = fetch_add_acq_rel(&state.reserved, blocks);
    }
  }
  result = static_cast<WorkResult>(group.from_first(static_cast<std::uint32_t>(result)));
  if (result == WorkResult::done) position = from_first_64(group, begin);
  return result;
}

/// Hands ranges that are filled without a gap to the card, until there are none or another thread
/// does so.
OFFLOAD_HOST_DEVICE inline void publish_filled(const SharedQueue& queue) {
  SharedSendState& state = *queue.state;
  const std::uint64_t mask = queue.queue.ring.blocks - 1;
  std::uint64_t end = 0;
  do {
    // Sequentially consistent, as is the mark's store: the thread that finds the bell taken has
    // stored its mark before the other one looks at the marks again, below.
    if (exchange_seq_cst(&state.ringing, 1) != 0) return;
    std::uint64_t newest = load_acquire(&state.published);
    end = end_of(newest);
    const std::uint64_t begin = end;
    for (;;) {
      // With acquire: the range is written. Pairs with publish().
      const std::uint64_t mark = load_acquire(&queue.marks[end & mask]);
      if (end_of(mark) <= end) break;
      newest = mark;
      end = end_of(mark);
    }
    if (end != begin) {
      // Before the doorbell, so that a thread that sees a completion knows its entry. Pairs with
      // poll_completions(), by way of the card.
      store_release(&state.published, newest);
      ring_up_to(queue.queue, end, load_acquire(&state.polled));
    }
    store_seq_cst(&state.ringing, 0);
  } while (end_of(load_seq_cst(&queue.marks[end & mask])) > end);
}

/// The same as for an exclusive queue, for a range that reserve() returned.
template <class Group>
OFFLOAD_HOST_DEVICE void publish(const Group& group, const SharedQueue& queue, std::uint64_t begin,
                                 std::uint64_t end, std::uint32_t last_blocks) {
  group.sync();
  if (group.lane() != 0) return;
  const std::uint64_t mask = queue.queue.ring.blocks - 1;
  // Releases the writes of the group, which the sync above ordered before.
  store_seq_cst(&queue.marks[begin & mask], mark_of(end, last_blocks));
  publish_filled(queue);
}

/// The result of a poll for completions.
struct TakenCompletions {
  std::uint32_t count;   ///< of completions
  std::uint64_t before;  ///< blocks from here
  std::uint64_t end;     ///< up to here are completed since, and not free yet
};

/// Takes up to this number of completions; only for the thread that has `looking`.
OFFLOAD_HOST_DEVICE inline TakenCompletions poll_completions(const SharedQueue& queue) {
  constexpr std::uint32_t kMost = 32;
  SharedSendState& state = *queue.state;
  std::uint64_t polled = load_acquire(&state.polled);
  const std::uint64_t before = load_acquire(&state.completed);
  std::uint64_t completed = before;
  Completion completion{};
  std::uint32_t count = 0;
  for (; count < kMost && poll_completion(queue.queue.completions, polled, completion); ++count) {
    ++polled;
    // The value of the entry's doorbell or a later one, because the completion was seen.
    const std::uint64_t newest = load_acquire(&state.published);
    const auto ahead = static_cast<std::uint16_t>(completion.counter - completed);
    const std::uint64_t entry = completed + ahead;
    if (entry >= end_of(newest)) {
      completion.syndrome = Syndrome::bad_response;
    } else {
      completed = entry == last_of(newest) ? end_of(newest) : entry + 1;
    }
    if (completion.syndrome != Syndrome::none && load_acquire(&state.error) == 0) {
      store_release(&state.error, QueueError::of(completion).word);
    }
  }
  if (count != 0) {
    store_release(&state.polled, polled);
    // With release: what the operations wrote is there. Pairs with is_completed().
    store_release(&state.completed, completed);
  }
  return {count, before, completed};
}

/// Lets the blocks of completed entries be written again.
OFFLOAD_HOST_DEVICE inline void free_blocks(const SharedQueue& queue,
                                            const TakenCompletions& taken) {
  // With release: the blocks are read no more. Pairs with reserve().
  if (taken.end != taken.before) {
    fetch_add_acq_rel(&queue.state->under_way, taken.before - taken.end);
  }
}

/// Takes up to this number of completions, unless another thread does so. Returns the number.
OFFLOAD_HOST_DEVICE inline std::uint32_t take_completions(const SharedQueue& queue) {
  SharedSendState& state = *queue.state;
  if (exchange_seq_cst(&state.looking, 1) != 0) return 0;
  const TakenCompletions taken = poll_completions(queue);
  free_blocks(queue, taken);
  store_release(&state.looking, 0);
  return taken.count;
}

/// Takes completions for all threads; returns their number.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t look(const Group& group, const SharedQueue& queue) {
  return group.from_first(group.lane() == 0 ? take_completions(queue) : 0);
}

/// Returns whether the entry at `position` and all earlier ones are completed.
template <class Group>
OFFLOAD_HOST_DEVICE bool is_completed(const Group& group, const SharedQueue& queue,
                                      std::uint64_t position) {
  bool completed = false;
  if (group.lane() == 0) completed = load_acquire(&queue.state->completed) > position;
  completed = group.from_first(completed ? 1 : 0) != 0;
  if (completed) group.sync();  // lane 0 acquired for all
  return completed;
}

OFFLOAD_HOST_DEVICE inline const SendQueue& handle_of(const SharedQueue& queue) {
  return queue.queue;
}

}  // namespace offload::kernels::rdma
