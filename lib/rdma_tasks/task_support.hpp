#pragma once

#include <concepts>

#include "rdma/verbs/device_context.hpp"
#include "rdma_tasks/operation.hpp"

namespace offload::rdma {

/// Returns whether connections of `type` over `device` have tasks of the type Task, and if not,
/// why. Both ends need it; the peer's grants are a separate condition. Any thread.
template <std::derived_from<RdmaTask> Task>
[[nodiscard]] device::Support supports_task(const DeviceContext& device, QpType type = QpType::rc) {
  constexpr bool kAtomic =
      std::same_as<Task, CompareAndSwapTask> || std::same_as<Task, FetchAndAddTask>;
  // A sync event can be set over UC too; got and added to by a read and an atomic.
  constexpr bool kReads = kAtomic || std::same_as<Task, ReadTask>;
  if (auto has_type = device.supports(type); !has_type) return has_type;
  if (type == QpType::ud) return {false, "UD has no connections"};
  if (type == QpType::raw_packet) return {false, "raw packets have no connections"};
  if (kReads && type != QpType::rc) return {false, "UC has only sends and writes"};
  if (kReads && device.attributes().max_qp_rd_atom == 0) {
    return {false, "the device supports neither reads nor atomics of a peer"};
  }
  if (kAtomic && device.attributes().atomic_cap == IBV_ATOMIC_NONE) {
    return {false, "the device has no atomics"};
  }
  return {true, {}};
}

}  // namespace offload::rdma
