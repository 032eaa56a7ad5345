#include "backend/gpu_range.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/cuda_ranges.hpp"

namespace offload::backend {

memory::Range make_gpu_range(const device::Device& gpu, std::size_t length) {
  gpu::open_gpu(gpu.pci_address);
  return gpu::make_exported_range(length);
}

}  // namespace offload::backend
