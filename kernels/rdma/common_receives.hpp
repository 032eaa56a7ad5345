#pragma once

#include <cstdint>

#include "kernels/rdma/queue_error.hpp"
#include "kernels/rdma/queue_pair.hpp"
#include "kernels/rdma/shared_word.hpp"
#include "kernels/rdma/wait.hpp"

/// A receive queue that many threads of many blocks post to, each for itself. A receive takes room
/// from the credits, then a position; its place is marked when its entry is written, and the thread
/// that closes a gap hands over all that are marked behind it, as in a SharedQueue. Completions
/// come in the order of the receives, one for each, so completion i is that of the receive at
/// position i.
namespace offload::kernels::rdma {

/// Shared by the threads, zero at first. In their memory, such as the GPU's.
struct alignas(64) CommonReceiveState {
  alignas(64) std::uint64_t under_way;  ///< receives that were taken and are not completed
  alignas(64) std::uint64_t reserved;   ///< the next position
  alignas(64) std::uint64_t ringing;    ///< 1: a thread publishes
  std::uint64_t published;              ///< up to here the card may use them
  alignas(64) std::uint64_t looking;    ///< 1: a thread takes completions
  std::uint64_t polled;                 ///< completions
  std::uint64_t error;                  ///< of the first that failed, as QueueError's word
};

struct CommonReceives {
  ReceiveQueue queue;
  CommonReceiveState* state;
  std::uint64_t* marks;  ///< one for each entry: the position behind it once it is written
};

/// Takes up to this number of completions, unless another thread does so. Returns the number.
OFFLOAD_HOST_DEVICE inline std::uint32_t take_completions(const CommonReceives& receives) {
  constexpr std::uint32_t kMost = 32;
  CommonReceiveState& state = *receives.state;
  if (exchange_seq_cst(&state.looking, 1) != 0) return 0;
  std::uint64_t polled = load_acquire(&state.polled);
  Completion completion{};
  std::uint32_t count = 0;
  while (count < kMost && poll_completion(receives.queue.completions, polled, completion)) {
    ++polled;
    ++count;
    if (completion.is_error() && load_acquire(&state.error) == 0) {
      store_release(&state.error, QueueError::of(completion).word);
    }
  }
  if (count != 0) {
    free_completions(receives.queue.completions, polled);
    // With release: what the peer wrote is there. Pairs with is_received().
    store_release(&state.polled, polled);
    // With release: the places are read no more. Pairs with the add of post_receive().
    fetch_add_acq_rel(&state.under_way, std::uint64_t{0} - count);
  }
  store_release(&state.looking, 0);
  return count;
}

/// Hands receives that are written without a gap to the card, until there are none or another
/// thread does so. The orders are those of SharedQueue's publish_filled().
OFFLOAD_HOST_DEVICE inline void publish_filled(const CommonReceives& receives) {
  CommonReceiveState& state = *receives.state;
  const std::uint64_t mask = receives.queue.entries - 1;
  std::uint64_t end = 0;
  do {
    if (exchange_seq_cst(&state.ringing, 1) != 0) return;
    const std::uint64_t begin = load_acquire(&state.published);
    end = begin;
    while (load_acquire(&receives.marks[end & mask]) == end + 1) ++end;
    if (end != begin) {
      store_release(&state.published, end);
      store_record(receives.queue.record, static_cast<std::uint32_t>(end & 0xffffU));
    }
    store_seq_cst(&state.ringing, 0);
  } while (load_seq_cst(&receives.marks[end & mask]) == end + 1);
}

/// Posts a receive and sets its position. WorkResult::pending: there is no room until completions
/// are taken; WorkResult::failed: the queue is in error.
OFFLOAD_HOST_DEVICE inline WorkResult post_receive(const CommonReceives& receives,
                                                   const LocalBuffer& buffer,
                                                   std::uint64_t& position) {
  CommonReceiveState& state = *receives.state;
  if (load_acquire(&state.error) != 0) return WorkResult::failed;
  if (fetch_add_acq_rel(&state.under_way, 1) + 1 > receives.queue.entries) {
    fetch_add_acq_rel(&state.under_way, std::uint64_t{0} - 1);
    return WorkResult::pending;
  }
  position = fetch_add_acq_rel(&state.reserved, 1);
  const std::uint64_t place = position & (receives.queue.entries - 1);
  receives.queue.ring[place] = receive_segment(buffer);
  store_seq_cst(&receives.marks[place], position + 1);
  publish_filled(receives);
  return WorkResult::done;
}

/// Returns whether the receive at `position` and all earlier ones are completed.
OFFLOAD_HOST_DEVICE inline bool is_received(const CommonReceives& receives,
                                            std::uint64_t position) {
  return load_acquire(&receives.state->polled) > position;
}

}  // namespace offload::kernels::rdma
