#pragma once

#include "apps/rdma_tasks/device/lane_operations.hpp"

/// The work of one lane: the loop of an operation. All lanes of its group run it together, on a GPU
/// or a CPU.
namespace offload::rdma_tool {

/// The order of a lane's operations.
template <class Group, class Queue>
class LaneLoop {
 public:
  OFFLOAD_HOST_DEVICE LaneLoop(const Group& group, const LaneRun& run, const DeviceWork& work,
                               Queue& queue, kernels::rdma::ExclusiveReceives& receives)
      : work_(work), operations_(group, run, work, queue, receives) {}

  OFFLOAD_HOST_DEVICE DeviceOutcome run() {
    static_cast<void>(run_all() && operations_.flush());
    return operations_.outcome();
  }

 private:
  using Kind = DeviceWork::Kind;

  /// Operations that the peer's lanes take no part in.
  OFFLOAD_HOST_DEVICE bool is_one_sided() const {
    return work_.kind == Kind::read || work_.kind == Kind::swap || work_.kind == Kind::add ||
           work_.kind == Kind::copy;
  }
  OFFLOAD_HOST_DEVICE bool run_all() {
    if (is_one_sided()) return run_one_sided();
    if (work_.memory.in_flight == 1) return ping_pong();
    return work_.sends ? send_stream() : receive_stream();
  }

  OFFLOAD_HOST_DEVICE bool ping_pong() {
    for (std::uint64_t i = work_.begin; i != work_.end; ++i) {
      if (work_.sends && !operations_.post(i)) return false;
      if (!operations_.await(i)) return false;
      // The answering end measures from its last answer.
      operations_.took(i, operations_.elapsed() / 2);
      if (!operations_.check_message(i) || !operations_.give_back()) return false;
      if (!work_.sends && !operations_.post(i)) return false;
    }
    return true;
  }

  OFFLOAD_HOST_DEVICE bool send_stream() {
    for (std::uint64_t i = work_.begin + operations_.lane(); i < work_.end; i += work_.lanes) {
      if (!operations_.wait_credit(i) || !operations_.post(i)) return false;
    }
    return true;
  }

  OFFLOAD_HOST_DEVICE bool receive_stream() {
    for (std::uint64_t i = work_.begin; i != work_.end; ++i) {
      if (!operations_.await(i) || !operations_.check_message(i) || !operations_.give_back())
        return false;
      if ((i + 1) % work_.memory.in_flight == 0 && !operations_.give_credit(i + 1)) return false;
    }
    return true;
  }

  /// As Benchmark::run_one_sided(): an atomic finds the word that the one before it in its slot
  /// made, so a slot is one lane's.
  OFFLOAD_HOST_DEVICE bool run_one_sided() {
    const std::uint64_t depth = work_.memory.in_flight;
    for (std::uint64_t i = work_.begin + operations_.lane(); i < work_.end + depth;
         i += work_.lanes) {
      if (i >= work_.begin + depth) {
        const std::uint64_t done = i - depth;
        if (!operations_.wait_slot(done)) return false;
        operations_.took(done, operations_.elapsed());
        if (!operations_.check_one_sided(done)) return false;
      }
      if (i < work_.end && !operations_.post_one_sided(i)) return false;
    }
    return true;
  }

  const DeviceWork& work_;
  LaneOperations<Group, Queue> operations_;
};

/// Does one lane's part and writes what became of it. Several lanes only of an end that posts.
template <class Group>
OFFLOAD_HOST_DEVICE void run_lane(const Group& group, LaneRun& run) {
  const DeviceWork work = run.work;
  kernels::rdma::ExclusiveReceives receives = run.queues->receives;
  DeviceOutcome outcome;
  if (work.lanes > 1) {
    kernels::rdma::SharedQueue queue = run.queues->shared;
    outcome = LaneLoop<Group, kernels::rdma::SharedQueue>(group, run, work, queue, receives).run();
  } else {
    kernels::rdma::ExclusiveQueue queue = run.queues->sends;
    outcome =
        LaneLoop<Group, kernels::rdma::ExclusiveQueue>(group, run, work, queue, receives).run();
    group.sync();  // all lanes have copied the queue, which lane 0 writes next
    if (group.lane() == 0) run.queues->sends = queue;
  }
  if (group.lane() != 0) return;
  // With several lanes, only one of them receives.
  if (run.lane == 0) run.queues->receives = receives;
  run.outcome = outcome;
}

}  // namespace offload::rdma_tool
