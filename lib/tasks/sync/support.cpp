#include "tasks/sync/support.hpp"

namespace offload::sync {

using device::Capability;
using device::Kind;
using device::Support;

Support supports_export(const device::Device& device, ExportTarget target) {
  switch (target) {
    case ExportTarget::process:
      if (device.kind == Kind::host) return supports(device, Capability::shared_memory);
      return {false, "only host memory is shared by processes"};
    case ExportTarget::gpu:
      if (device.kind == Kind::gpu) return supports(device, Capability::mapped_host_memory);
      return {false, "it is not a GPU"};
    case ExportTarget::gpu_add:
      if (device.kind == Kind::gpu) return supports(device, Capability::native_host_atomics);
      return {false, "it is not a GPU"};
    case ExportTarget::peer:
      if (device.kind == Kind::rdma) return supports(device, Capability::export_to_peer);
      return {false, "it is not an RDMA device"};
    case ExportTarget::dpa: break;
  }
  return {false, "the processors of a card need the closed tools of their vendor"};
}

}  // namespace offload::sync
