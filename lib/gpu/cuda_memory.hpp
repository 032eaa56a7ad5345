#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

/// Thin owners over the CUDA runtime. Those of handles that others make too can adopt one, which
/// they then destroy, or borrow one, which must outlive them and stays the other's.
namespace offload::gpu {

inline core::Cause cuda_cause(cudaError_t status) noexcept {
  return {core::Cause::Domain::cuda, static_cast<int>(status)};
}

/// Throws Error (driver) for a failed call: "`action`: CUDA's words".
inline void check_cuda(cudaError_t status, const std::string& action) {
  if (status == cudaSuccess) return;
  throw core::Error(core::ErrorCode::driver, action + ": " + cudaGetErrorString(status),
                    cuda_cause(status));
}

/// The same for destructors: logs.
inline void note_cuda(cudaError_t status, const char* action) noexcept {
  if (status != cudaSuccess) core::log_warning("{}: {}", action, cudaGetErrorString(status));
}

/// Device memory for `count` objects, zeroed.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc");
    data_.reset(static_cast<T*>(data));
    check_cuda(cudaMemset(data, 0, count * sizeof(T)), "cudaMemset");
    // It goes on after the call, and streams that are non-blocking would not wait for it.
    check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  }
  /// Of cudaMalloc.
  [[nodiscard]] static DeviceArray adopt(T* data) noexcept { return DeviceArray(data, true); }
  [[nodiscard]] static DeviceArray borrow(T* data) noexcept { return DeviceArray(data, false); }

  [[nodiscard]] T* get() const noexcept { return data_.get(); }

 private:
  struct Free {
    bool owned = true;
    void operator()(T* data) const noexcept {
      if (owned) note_cuda(cudaFree(data), "cudaFree");
    }
  };
  DeviceArray(T* data, bool owned) noexcept : data_(data, Free{owned}) {}

  std::unique_ptr<T, Free> data_;
};

/// Pinned host memory for `count` objects that the GPU sees at the same address, zeroed.
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
    void operator()(T* data) const noexcept { note_cuda(cudaFreeHost(data), "cudaFreeHost"); }
  };
  std::unique_ptr<T, Free> data_;
};

/// Memory of the process made visible to the GPU, for as long as this lives.
class HostRegistration {
 public:
  HostRegistration(void* data, std::size_t bytes) : data_(data) {
    check_cuda(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
               "cudaHostRegister of " + std::to_string(bytes) + " bytes");
  }
  HostRegistration(HostRegistration&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)) {}
  HostRegistration& operator=(HostRegistration&&) = delete;
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;
  ~HostRegistration() {
    if (data_ != nullptr) note_cuda(cudaHostUnregister(data_), "cudaHostUnregister");
  }

  /// Leaves the memory registered, for somebody else to end that.
  void release() noexcept { data_ = nullptr; }

  /// Where the GPU sees it.
  [[nodiscard]] void* device_address() const {
    void* address = nullptr;
    check_cuda(cudaHostGetDevicePointer(&address, data_, 0), "cudaHostGetDevicePointer");
    return address;
  }

 private:
  void* data_;
};

/// Tells when the work before it on a stream is done; one of its own measures no time.
class Event {
 public:
  Event() {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  [[nodiscard]] static Event adopt(cudaEvent_t event) noexcept { return {event, true}; }
  [[nodiscard]] static Event borrow(cudaEvent_t event) noexcept { return {event, false}; }

  Event(Event&& other) noexcept
      : event_(std::exchange(other.event_, nullptr)), owned_(other.owned_) {}
  Event& operator=(Event&&) = delete;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (owned_ && event_ != nullptr) note_cuda(cudaEventDestroy(event_), "cudaEventDestroy");
  }
  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

 private:
  Event(cudaEvent_t event, bool owned) noexcept : event_(event), owned_(owned) {}

  cudaEvent_t event_ = nullptr;
  bool owned_ = true;
};

/// A stream; one of its own does not wait for the default one.
class Stream {
 public:
  Stream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  [[nodiscard]] static Stream adopt(cudaStream_t stream) noexcept { return {stream, true}; }
  /// Also of the default streams, which nobody owns.
  [[nodiscard]] static Stream borrow(cudaStream_t stream) noexcept { return {stream, false}; }

  Stream(Stream&& other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)),
        owned_(std::exchange(other.owned_, false)) {}
  Stream& operator=(Stream&&) = delete;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (owned_) note_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  Stream(cudaStream_t stream, bool owned) noexcept : stream_(stream), owned_(owned) {}

  cudaStream_t stream_ = nullptr;
  bool owned_ = true;
};

}  // namespace offload::gpu
