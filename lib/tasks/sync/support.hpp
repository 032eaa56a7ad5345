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

/// Returns whether events can be exported to `target` by `exporter`, and if not, why: by the host
/// to processes, by a GPU to its kernels, by an RDMA device to peers. Any thread.
inline device::Support supports_export(const device::Device& exporter, ExportTarget target) {
  using device::Capability;
  using device::Kind;
  switch (target) {
    case ExportTarget::process:
      if (exporter.kind == Kind::host) return supports(exporter, Capability::shared_memory);
      return {false, "only host memory is shared by processes"};
    case ExportTarget::gpu:
      if (exporter.kind == Kind::gpu) return supports(exporter, Capability::mapped_host_memory);
      return {false, "it is not a GPU"};
    case ExportTarget::gpu_add:
      if (exporter.kind == Kind::gpu) return supports(exporter, Capability::native_host_atomics);
      return {false, "it is not a GPU"};
    case ExportTarget::peer:
      if (exporter.kind == Kind::rdma) return supports(exporter, Capability::export_to_peer);
      return {false, "it is not an RDMA device"};
    case ExportTarget::dpa: break;
  }
  return {false, "the processors of a card need the closed tools of their vendor"};
}

}  // namespace offload::sync
