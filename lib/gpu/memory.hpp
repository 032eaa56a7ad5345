#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "device/peer_mapping.hpp"
#include "gpu/error.hpp"

/// Owners of CUDA memory. A view of any is a plain pointer.
namespace offload::gpu {

/// Owns device memory for `count` objects, zeroed. On the current device. Throws Error.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc");
    data_.reset(static_cast<T*>(data));
    check_cuda(cudaMemset(data, 0, count * sizeof(T)), "cudaMemset");
    // The fill goes on after the call, and streams that are non-blocking would not wait for it.
    check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  }
  /// Takes over memory that cudaMalloc made.
  [[nodiscard]] static DeviceArray from_native_handle(T* data) noexcept {
    return DeviceArray(data);
  }

  [[nodiscard]] T* get() const noexcept { return data_.get(); }
  /// Gives the memory up to the caller, who frees it by cudaFree.
  [[nodiscard]] T* release() noexcept { return data_.release(); }

 private:
  struct Free {
    void operator()(T* data) const noexcept { log_cuda(cudaFree(data), "cudaFree"); }
  };
  explicit DeviceArray(T* data) noexcept : data_(data) {}

  std::unique_ptr<T, Free> data_;
};

/// Owns pinned host memory for `count` objects that the GPU sees at the same address, zeroed.
/// Throws Error.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) {
    void* data = nullptr;
    check_cuda(cudaHostAlloc(&data, count * sizeof(T), cudaHostAllocPortable), "cudaHostAlloc");
    data_.reset(static_cast<T*>(data));
    std::uninitialized_value_construct_n(data_.get(), count);
  }
  [[nodiscard]] T* get() const noexcept { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const noexcept { log_cuda(cudaFreeHost(data), "cudaFreeHost"); }
  };
  std::unique_ptr<T, Free> data_;
};

/// Registers `bytes` of the process's memory with the GPU for as long as it lives. Throws Error.
class HostRegistration {
 public:
  /// Not `writable`: memory that is mapped for reading only
  /// (cudaDevAttrHostRegisterReadOnlySupported).
  HostRegistration(void* data, std::size_t bytes, bool writable = true)
      : HostRegistration(data, bytes, writable ? 0U : unsigned{cudaHostRegisterReadOnly},
                         writable ? "" : ", for reading only") {}
  /// Registers whole pages to which registers of another PCIe device are mapped. A driver may
  /// refuse them. Pages of a device that is made of software are ordinary memory, which CUDA takes
  /// as that only.
  static HostRegistration of_registers(void* page, std::size_t bytes) {
    try {
      return {page, bytes, cudaHostRegisterIoMemory,
              ", registers of a device" + device::peer_mapping_advice()};
    } catch (const core::Error&) {
      cudaGetLastError();  // it is no error of later calls
      const unsigned ordinary = cudaHostRegisterPortable | cudaHostRegisterMapped;
      if (cudaHostRegister(page, bytes, ordinary) == cudaSuccess) return HostRegistration(page);
      cudaGetLastError();
      throw;
    }
  }
  HostRegistration(HostRegistration&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)) {}
  ~HostRegistration() {
    if (data_ != nullptr) log_cuda(cudaHostUnregister(data_), "cudaHostUnregister");
  }

  /// Leaves the memory registered: the caller ends that by cudaHostUnregister.
  void release() noexcept { data_ = nullptr; }

  /// Returns the GPU's address of the memory.
  [[nodiscard]] void* device_address() const {
    void* address = nullptr;
    check_cuda(cudaHostGetDevicePointer(&address, data_, 0), "cudaHostGetDevicePointer");
    return address;
  }

 private:
  explicit HostRegistration(void* registered) noexcept : data_(registered) {}
  HostRegistration(void* data, std::size_t bytes, unsigned more, const std::string& what)
      : data_(data) {
    const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped | more;
    check_cuda(cudaHostRegister(data, bytes, flags),
               "cudaHostRegister of " + std::to_string(bytes) + " bytes" + what);
  }

  void* data_;
};

}  // namespace offload::gpu
