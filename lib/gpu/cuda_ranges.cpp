#include "gpu/cuda_ranges.hpp"

#include <utility>

#include "core/error.hpp"
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

/// In Key::local: registered by another owner, who ends that.
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

memory::Range make_device_range(std::size_t length) {
  return range_of<DeviceArray<std::byte>>(length, memory::Location::device);
}

memory::Range make_pinned_range(std::size_t length) {
  return range_of<PinnedArray<std::byte>>(length, memory::Location::host);
}

memory::Key CudaRegistrar::register_range(const memory::Range& range, memory::Access access) {
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
  const memory::Key key{.handle = registration.device_address()};
  registration.release();
  return key;
}

void CudaRegistrar::deregister(const memory::Range& range, const memory::Key& key) noexcept {
  if (key.local == kRegisteredBefore) return;
  log_cuda(cudaHostUnregister(range.address), "cudaHostUnregister");
}

}  // namespace offload::gpu
