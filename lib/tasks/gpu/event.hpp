#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "gpu/cuda_stream.hpp"
#include "gpu/error.hpp"

namespace offload::gpu {

/// A view of a CUDA event, as cuda::event_ref: copied freely, owns nothing. The event must outlive
/// it.
class EventRef {
 public:
  EventRef(cudaEvent_t event) noexcept : event_(event) {}
  EventRef(int) = delete;
  EventRef(std::nullptr_t) = delete;

  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

  /// Marks the end of the work that is on `stream` now.
  [[nodiscard]] cudaError_t record(CudaStreamRef stream) const noexcept {
    return cudaEventRecord(event_, stream.get());
  }
  /// cudaSuccess when the recorded work is done, cudaErrorNotReady while it is not, or why it
  /// failed.
  [[nodiscard]] cudaError_t query() const noexcept { return cudaEventQuery(event_); }

 protected:
  cudaEvent_t event_;
};

/// Owns a CUDA event, which it destroys; as cuda::event. Moved from, it owns none.
class Event : public EventRef {
 public:
  /// Makes one that measures no time. Throws Error.
  Event() : EventRef(cudaEvent_t{}) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  [[nodiscard]] static Event from_native_handle(cudaEvent_t event) noexcept { return Event(event); }
  static Event from_native_handle(int) = delete;
  static Event from_native_handle(std::nullptr_t) = delete;

  Event(Event&& other) noexcept : EventRef(other.release()) {}
  ~Event() {
    if (event_ != nullptr) log_cuda(cudaEventDestroy(event_), "cudaEventDestroy");
  }

  /// Gives the event up to the caller, who destroys it.
  [[nodiscard]] cudaEvent_t release() noexcept { return std::exchange(event_, nullptr); }

 private:
  explicit Event(cudaEvent_t event) noexcept : EventRef(event) {}
};

}  // namespace offload::gpu
