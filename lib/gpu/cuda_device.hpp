#pragma once

#include <string>

#include "device/device.hpp"

namespace offload::gpu {

/// The GPU at `pci_address`, as device::find takes it, or the first; made the calling thread's.
/// Throws Error: not_found where there is none. To be called before any other use of CUDA.
device::Device open_gpu(const std::string& pci_address);

}  // namespace offload::gpu
