#pragma once

#include <cstdint>

#include "kernels/rdma/operations.hpp"

/// Receives of one owner: a thread, a warp or a block, each lane of which has a copy of the
/// positions. Every lane must call each function, with the same arguments.
namespace offload::kernels::rdma {

struct ExclusiveReceives {
  ReceiveQueue queue;
  ReceiveState state{};
};

/// Posts `count` receives; `make`(i) returns the buffer of receive i. WorkResult::pending: there is
/// no room for all, and none was posted.
template <class Group, class Make>
OFFLOAD_HOST_DEVICE WorkResult post_receives(const Group& group, ExclusiveReceives& receives,
                                             std::uint32_t count, const Make& make) {
  ReceiveState& state = receives.state;
  const std::uint32_t entries = receives.queue.entries;
  if (count > entries) return WorkResult::invalid;
  if (state.posted - state.polled + count > entries) return WorkResult::pending;
  for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
    store_segment(receives.queue.ring[(state.posted + i) & (entries - 1)],
                  receive_segment(make(i)));
  }
  state.posted += count;
  group.sync();  // the record's release is of all lanes' entries
  if (group.lane() == 0) publish(receives.queue, state);
  return WorkResult::done;
}

/// Waits for the completion of the oldest receive and takes it. WorkResult::failed: the completion
/// is an error; WorkResult::invalid: no receive is posted.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult receive(const Group& group, ExclusiveReceives& receives,
                                       const WaitLimit& limit, Completion& completion) {
  ReceiveState& state = receives.state;
  const CompletionQueue& completions = receives.queue.completions;
  if (state.posted == state.polled) return WorkResult::invalid;
  Wait wait(limit);
  for (;;) {
    bool there = false;
    if (group.lane() == 0) there = poll_completion(completions, state.polled, completion);
    if (group.from_first(there ? 1 : 0) != 0) break;
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return WorkResult::timed_out;
  }
  group.sync();  // lane 0 acquired for all
  const std::uint64_t mask = (std::uint64_t{1} << completions.log2) - 1;
  if (group.lane() != 0) completion = read_cqe(completions.entries[state.polled & mask]);
  group.sync();  // all have read it
  ++state.polled;
  if (group.lane() == 0) free_completions(completions, state.polled);
  return completion.is_error() ? WorkResult::failed : WorkResult::done;
}

}  // namespace offload::kernels::rdma
