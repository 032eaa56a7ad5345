#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace offload::sync {

/// The kinds of users to which a sync event can be exported.
enum class ExportTarget : std::uint8_t {
  process,  ///< of this machine: SyncEvent::export_to_process
  gpu,      ///< gpu::GpuSyncEvent
  gpu_add,  ///< the same, for a kernel whose adds others' adds must not get lost by
  peer,     ///< over the network: rdma::ExportedSyncEvent
  dpa,      ///< processors of a card
};

/// Returns whether events can be exported to `target` by `device`, and if not, why: by the host to
/// processes, by a GPU to its kernels, by an RDMA device to peers. Any thread.
device::Support supports_export(const device::Device& device, ExportTarget target);

}  // namespace offload::sync
