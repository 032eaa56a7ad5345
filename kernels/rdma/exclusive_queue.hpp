#pragma once

#include <cstdint>

#include "kernels/rdma/queue_error.hpp"
#include "kernels/rdma/queue_pair.hpp"
#include "kernels/rdma/wait.hpp"

/// A send queue of one owner: a thread, a warp or a block. Each lane of the group has a copy of its
/// positions, which all lanes change in the same way: no lane asks another one where to write.
///
/// Every lane of the group must call each function, with the same arguments.
namespace offload::kernels::rdma {

struct ExclusiveQueue {
  SendQueue queue;
  SendState state{};
  QueueError error{};
};

/// Returns the position of the next entry.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint64_t next_position(const Group&, const ExclusiveQueue& queue) {
  return queue.state.posted;
}

/// Takes `blocks` blocks for entries that the caller then writes and publishes.
/// WorkResult::pending: there is no room until completions come.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult reserve(const Group&, ExclusiveQueue& queue, std::uint32_t blocks,
                                       std::uint64_t& position) {
  SendState& state = queue.state;
  if (blocks > queue.queue.ring.blocks) return WorkResult::invalid;
  if (queue.error) return WorkResult::failed;
  if (state.posted + blocks - state.completed > queue.queue.ring.blocks) return WorkResult::pending;
  position = state.posted;
  state.posted += blocks;
  return WorkResult::done;
}

/// Hands the entries from `begin` to `end` to the card; the last of them has `last_blocks` blocks.
/// The group's sync orders what its lanes wrote before the release of the record.
template <class Group>
OFFLOAD_HOST_DEVICE void publish(const Group& group, ExclusiveQueue& queue, std::uint64_t,
                                 std::uint64_t end, std::uint32_t last_blocks) {
  SendState& state = queue.state;
  group.sync();
  if (group.lane() == 0) ring_up_to(queue.queue, end, state.polled);
  state.published = end;
  state.last = end - last_blocks;
}

/// Returns how many lanes from the first on have `there` set; at most all.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t leading(const Group& group, bool there) {
  if (group.all(there)) return group.size();
  const std::uint32_t before = group.exclusive_sum(there ? 1 : 0);
  const bool first_without = !there && before == group.lane();
  return group.combine_xor(first_without ? group.lane() : 0);
}

/// Takes the completions that have come, at most one for each lane; returns their number. The next
/// publish() tells the card that they were read.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t look(const Group& group, ExclusiveQueue& queue) {
  SendState& state = queue.state;
  const std::uint32_t lane = group.lane();
  Completion completion{};
  // Not more than can come: each place that a lane checks is a read over PCIe, for which fences
  // wait. A block may have more lanes than the queue has places.
  const std::uint64_t most = state.published - state.completed;
  const bool fits = lane < most && lane >> queue.queue.completions.log2 == 0;
  const bool there =
      fits && poll_completion(queue.queue.completions, state.polled + lane, completion);
  const std::uint32_t count = leading(group, there);
  if (count == 0) return 0;

  const std::uint32_t newest = group.combine_xor(lane + 1 == count ? completion.counter : 0);
  const auto ahead = static_cast<std::uint16_t>(newest - state.completed);
  const std::uint64_t entry = state.completed + ahead;
  const bool known = entry < state.published;
  const bool wrong = lane < count && (completion.is_error() || !known);
  if (!group.all(!wrong)) {
    if (!known) completion.syndrome = Syndrome::bad_response;
    const std::uint32_t before = group.exclusive_sum(wrong ? 1 : 0);
    const bool first = wrong && before == 0;
    const std::uint32_t word = group.combine_xor(first ? QueueError::of(completion).word : 0);
    if (!queue.error) queue.error.word = word;
  }
  state.polled += count;
  if (known) state.completed = entry == state.last ? state.published : entry + 1;
  group.sync();  // the lane that saw the newest completion acquired for all
  return count;
}

/// Returns whether the entry at `position` and all earlier ones are completed.
template <class Group>
OFFLOAD_HOST_DEVICE bool is_completed(const Group&, const ExclusiveQueue& queue,
                                      std::uint64_t position) {
  return queue.state.completed > position;
}

template <class Group>
OFFLOAD_HOST_DEVICE QueueError error_of(const Group&, const ExclusiveQueue& queue) {
  return queue.error;
}

OFFLOAD_HOST_DEVICE inline const SendQueue& handle_of(const ExclusiveQueue& queue) {
  return queue.queue;
}

}  // namespace offload::kernels::rdma
