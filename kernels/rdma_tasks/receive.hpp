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

/// Posts `count` receives; `make`(i) returns the buffer of receive i. Result::pending: there is no
/// room for all, and none was posted.
template <class Group, class Make>
OFFLOAD_HOST_DEVICE Result post_receives(const Group& group, ExclusiveReceives& receives,
                                         std::uint32_t count, const Make& make) {
  ReceiveState& state = receives.state;
  const std::uint32_t entries = receives.queue.entries;
  if (count > entries) return Result::invalid;
  if (state.posted - state.polled + count > entries) return Result::pending;
  for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
    store_segment(receives.queue.ring[(state.posted + i) & (entries - 1)], data_segment(make(i)));
  }
  state.posted += count;
  group.sync();  // the record's release is of all lanes' entries
  if (group.lane() == 0) publish(receives.queue, state);
  return Result::done;
}

/// Waits for the completion of the oldest receive and takes it. Result::failed: the completion is
/// an error; Result::invalid: no receive is posted.
template <class Group>
OFFLOAD_HOST_DEVICE Result receive(const Group& group, ExclusiveReceives& receives,
                                   const WaitLimit& limit, Completion& completion) {
  ReceiveState& state = receives.state;
  const CompletionQueue& completions = receives.queue.completions;
  if (state.posted == state.polled) return Result::invalid;
  Wait wait(limit);
  for (;;) {
    bool there = false;
    if (group.lane() == 0) there = poll_completion(completions, state.polled, completion);
    if (group.from_first(there ? 1 : 0) != 0) break;
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return Result::timed_out;
  }
  group.sync();  // lane 0 acquired for all
  const std::uint64_t mask = (std::uint64_t{1} << completions.log2) - 1;
  if (group.lane() != 0) completion = read_cqe(completions.entries[state.polled & mask]);
  group.sync();  // all have read it
  ++state.polled;
  if (group.lane() == 0) free_completions(completions, state.polled);
  return completion.is_error() ? Result::failed : Result::done;
}

}  // namespace offload::kernels::rdma
