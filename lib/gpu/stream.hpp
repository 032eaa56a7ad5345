#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "gpu/error.hpp"

namespace offload::gpu {

/// A view of a CUDA stream, as cuda::stream_ref: copied freely, owns nothing. The stream must
/// outlive it.
class StreamRef {
 public:
  /// Also of the default streams: cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread.
  StreamRef(cudaStream_t stream) noexcept : stream_(stream) {}
  StreamRef(int) = delete;
  StreamRef(std::nullptr_t) = delete;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

  /// cudaSuccess when all work on it is done, cudaErrorNotReady while it is not, or why it failed.
  [[nodiscard]] cudaError_t query() const noexcept { return cudaStreamQuery(stream_); }
  /// Waits until all work on it is done. Throws Error (driver).
  void sync() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 protected:
  cudaStream_t stream_;
};

/// Owns a CUDA stream, which it destroys; as cuda::stream. Moved from, it owns none.
class Stream : public StreamRef {
 public:
  /// Makes one on the current device that does not wait for the default stream. Throws Error.
  Stream() : StreamRef(cudaStream_t{}) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  /// Takes over `stream`, which is no default stream.
  [[nodiscard]] static Stream from_native_handle(cudaStream_t stream) noexcept {
    return Stream(stream);
  }
  static Stream from_native_handle(int) = delete;
  static Stream from_native_handle(std::nullptr_t) = delete;

  Stream(Stream&& other) noexcept : StreamRef(other.release()) {}
  ~Stream() {
    if (stream_ != nullptr) log_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }

  /// Gives the stream up to the caller, who destroys it.
  [[nodiscard]] cudaStream_t release() noexcept { return std::exchange(stream_, nullptr); }

 private:
  explicit Stream(cudaStream_t stream) noexcept : StreamRef(stream) {}
};

}  // namespace offload::gpu
