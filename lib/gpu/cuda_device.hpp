#pragma once

#include <string>

#include "device/device.hpp"

namespace offload::gpu {

/// Opens the GPU at `pci_address`, as device::find takes it, or the first, and makes it the calling
/// thread's current device. Throws Error: not_found where there is none. To be called before any
/// other use of CUDA: it sets how kernels are
/// loaded, and how many streams run at once. Any thread, several at once.
device::Device open_gpu(const std::string& pci_address);

}  // namespace offload::gpu
