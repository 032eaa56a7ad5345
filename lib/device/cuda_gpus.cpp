#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cctype>

#include "device/sysfs.hpp"

namespace offload::device {
namespace {

std::string pci_address_of(int device) {
  std::array<char, 32> text{};
  if (cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device) != cudaSuccess) {
    return {};
  }
  std::string address(text.data());
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return address;
}

Support from_attribute(const Device& gpu, cudaDeviceAttr attribute, const char* reason) {
  int value = 0;
  const auto status = cudaDeviceGetAttribute(&value, attribute, static_cast<int>(gpu.index));
  if (status != cudaSuccess) return {false, cudaGetErrorString(status)};
  return value != 0 ? Support{true, {}} : Support{false, reason};
}

/// Returns whether this build has code for the GPU: from OFFLOAD_LOWEST_SM on.
Support persistent_worker_of(const Device& gpu) {
  int major = 0;
  int minor = 0;
  const auto device = static_cast<int>(gpu.index);
  if (const auto status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
      status != cudaSuccess) {
    return {false, cudaGetErrorString(status)};
  }
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  const int capability = 10 * major + minor;
  if (capability < OFFLOAD_LOWEST_SM) {
    return {false, "its compute capability is " + std::to_string(major) + "." +
                       std::to_string(minor) + ", this build needs at least sm_" +
                       std::to_string(OFFLOAD_LOWEST_SM)};
  }
  return from_attribute(gpu, cudaDevAttrCanMapHostMemory, "it cannot map host memory");
}

/// Asks the driver, as the runtime has no name for this attribute; an old driver may not know it.
Support dma_buf_of(const Device& gpu) {
  void* entry = nullptr;
#if CUDART_VERSION >= 13000
  const auto found = cudaGetDriverEntryPointByVersion("cuDeviceGetAttribute", &entry, 11070,
                                                      cudaEnableDefault, nullptr);
#else
  const auto found = cudaGetDriverEntryPoint("cuDeviceGetAttribute", &entry, cudaEnableDefault);
#endif
  if (found != cudaSuccess || entry == nullptr) return {false, "the driver has no query for it"};
  const auto get = reinterpret_cast<CUresult (*)(int*, CUdevice_attribute, CUdevice)>(entry);
  int value = 0;
  const auto status =
      get(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, static_cast<CUdevice>(gpu.index));
  if (status != CUDA_SUCCESS) return {false, "the driver does not know dma-buf"};
  return value != 0
             ? Support{true, {}}
             : Support{false, "the driver exports no dma-buf (it needs the open kernel modules)"};
}

}  // namespace

DeviceList list_gpus() {
  DeviceList gpus;
  int count = 0;
  const auto status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    gpus.why_none =
        status != cudaSuccess ? cudaGetErrorString(status) : "the CUDA driver lists no GPU";
    return gpus;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    const std::string address = pci_address_of(device);
    gpus.devices.push_back({Kind::gpu, static_cast<std::uint32_t>(device), properties.name, address,
                            numa_node_of("/sys/bus/pci/devices/" + address),
                            properties.totalGlobalMem});
  }
  if (gpus.devices.empty()) gpus.why_none = "the CUDA driver describes none of its GPUs";
  return gpus;
}

Support gpu_supports(const Device& gpu, Capability capability) {
  switch (capability) {
    case Capability::persistent_worker: return persistent_worker_of(gpu);
    case Capability::mapped_host_memory:
      return from_attribute(gpu, cudaDevAttrCanMapHostMemory, "it cannot map host memory");
    case Capability::native_host_atomics:
      return from_attribute(gpu, cudaDevAttrHostNativeAtomicSupported,
                            "its link to the host has no native atomics");
    case Capability::peer_memory:
      return from_attribute(gpu, cudaDevAttrGPUDirectRDMASupported,
                            "its driver does not support GPUDirect RDMA");
    case Capability::dma_buf:
    case Capability::export_to_process: return dma_buf_of(gpu);
    case Capability::copies:
      return from_attribute(gpu, cudaDevAttrAsyncEngineCount, "it has no copy engine");
    case Capability::export_to_peer: return {false, "a network card must register its memory"};
    case Capability::shared_memory:
    case Capability::numa_binding:
    case Capability::huge_pages: break;
  }
  return {false, "GPU memory has no such capability"};
}

}  // namespace offload::device
