#pragma once

#include "gpu/memory.hpp"
#include "tasks/sync/sync_event.hpp"

namespace offload::gpu {

/// A sync event as kernels get it: its memory is registered with the current GPU for as long as
/// this lives, within which the event does. One whose publisher is a kernel is made with
/// sync::Publisher::gpu. A kernel's adds and others' see each other where
/// sync::supports_export(gpu, ExportTarget::gpu_add). Throws Error.
class GpuSyncEvent {
 public:
  explicit GpuSyncEvent(const sync::SyncEvent& event)
      : registration_(event.memory().data(), event.memory().size()),
        words_(static_cast<kernels::SyncEventWords*>(registration_.device_address())) {}

  /// For the functions of kernels/tasks/sync_event.hpp in device code.
  [[nodiscard]] kernels::SyncEventWords* get() const noexcept { return words_; }

 private:
  HostRegistration registration_;
  kernels::SyncEventWords* words_;
};

}  // namespace offload::gpu
