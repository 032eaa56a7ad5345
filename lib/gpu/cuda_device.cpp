#include "gpu/cuda_device.hpp"

#include <cstdlib>

#include "gpu/error.hpp"

namespace offload::gpu {

device::Device open_gpu(const std::string& pci_address) {
  // Before the first CUDA call. A kernel that is loaded at its first launch (lazy loading) would
  // wait for the persistent kernel to end. Once: setenv(3) is not for a process whose other threads
  // read the environment, as CUDA does.
  [[maybe_unused]] static const int set = ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // The most connections to the GPU there can be. Streams that share one wait for each other: for a
  // kernel that does not end, on and on.
  [[maybe_unused]] static const int connections = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const device::DeviceList gpus = device::list_gpus();
  if (gpus.devices.empty()) {
    throw core::Error(core::ErrorCode::not_found, "no GPU: " + gpus.why_none);
  }
  device::Device gpu =
      pci_address.empty() ? gpus.devices.front() : device::find(gpus.devices, pci_address);
  check_cuda(cudaSetDevice(static_cast<int>(gpu.index)), "cudaSetDevice");
  return gpu;
}

}  // namespace offload::gpu
