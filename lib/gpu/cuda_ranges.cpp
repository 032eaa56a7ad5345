#include "gpu/cuda_ranges.hpp"

#include <cuda.h>

#include <utility>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "gpu/memory.hpp"

namespace offload::gpu {
namespace {

/// `array` as a range that owns it.
template <class Array>
memory::Range range_of(std::size_t length, memory::Location location) {
  auto array = std::make_shared<Array>(length);
  void* const address = array->get();
  return memory::foreign_range(address, length, location, std::move(array));
}

/// The driver's function of that name, as no library of it is linked; null: it has none.
auto find_export() {
  void* entry = nullptr;
#if CUDART_VERSION >= 13000
  const auto found = cudaGetDriverEntryPointByVersion("cuMemGetHandleForAddressRange", &entry,
                                                      11070, cudaEnableDefault, nullptr);
#else
  const auto found =
      cudaGetDriverEntryPoint("cuMemGetHandleForAddressRange", &entry, cudaEnableDefault);
#endif
  return reinterpret_cast<CUresult (*)(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType,
                                       unsigned long long)>(found == cudaSuccess ? entry : nullptr);
}

/// Memory of the GPU with its descriptor, which closes first.
struct ExportedArray {
  DeviceArray<std::byte> array;
  core::Fd fd;
};

/// In MemoryKey::local: registered by another owner, who ends that.
constexpr std::uint32_t kRegisteredBefore = 1;

/// The GPU's address of host memory; null if it is not registered.
void* device_address_of(void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();  // unknown memory is an error to CUDA before 11
    return nullptr;
  }
  return attributes.type == cudaMemoryTypeHost ? attributes.devicePointer : nullptr;
}

}  // namespace

core::Fd export_dma_buf(void* address, std::size_t bytes) {
  const auto export_range = find_export();
  if (export_range == nullptr) {
    core::log_debug("the CUDA driver does not know dma-bufs");
    return {};
  }
  int fd = -1;
  const auto status = export_range(&fd, reinterpret_cast<CUdeviceptr>(address), bytes,
                                   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (status == CUDA_SUCCESS) return core::Fd(fd);
  core::log_debug("the CUDA driver exports no dma-buf: error {}", static_cast<int>(status));
  return {};
}

memory::Range make_device_range(std::size_t length) {
  return range_of<DeviceArray<std::byte>>(length, memory::Location::device);
}

memory::Range make_exported_range(std::size_t length) {
  // CUDA's unit of allocation: smaller ranges may share pages with other memory, which a peer could
  // access.
  constexpr std::size_t kGranularity = std::size_t{2} << 20;
  if (length == 0 || length > SIZE_MAX - kGranularity) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "memory of the GPU of " + std::to_string(length) + " bytes");
  }
  const std::size_t whole = (length + kGranularity - 1) / kGranularity * kGranularity;
  DeviceArray<std::byte> array(whole);
  core::Fd fd = export_dma_buf(array.get(), whole);
  memory::Descriptor descriptor;
  if (fd.valid()) descriptor = {memory::DescriptorKind::dma_buf, fd.get(), 0};
  void* const address = array.get();
  auto owner = std::make_shared<ExportedArray>(ExportedArray{std::move(array), std::move(fd)});
  return memory::foreign_range(address, length, memory::Location::device, std::move(owner),
                               descriptor);
}

memory::Range make_pinned_range(std::size_t length) {
  return range_of<PinnedArray<std::byte>>(length, memory::Location::host);
}

memory::MemoryKey CudaRegistrar::register_range(const memory::Range& range, memory::Access access) {
  if (range.location == memory::Location::device) {
    throw core::Error(core::ErrorCode::not_supported, "a GPU's own memory needs no registration");
  }
  if (!memory::includes(access, memory::Access::peer_pcie)) {
    throw core::Error(core::ErrorCode::not_permitted, "the region does not allow peer_pcie");
  }
  // Pinned memory is registered since it was made.
  if (void* const known = device_address_of(range.address); known != nullptr) {
    return {.local = kRegisteredBefore, .handle = known};
  }
  HostRegistration registration(range.address, range.length,
                                memory::includes(access, memory::Access::local_write));
  const memory::MemoryKey key{.handle = registration.device_address()};
  registration.release();
  return key;
}

void CudaRegistrar::deregister(const memory::Range& range, const memory::MemoryKey& key) noexcept {
  if (key.local == kRegisteredBefore) return;
  log_cuda(cudaHostUnregister(range.address), "cudaHostUnregister");
}

}  // namespace offload::gpu
