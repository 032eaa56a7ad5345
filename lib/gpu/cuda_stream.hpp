#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "gpu/error.hpp"

namespace offload::gpu {

/// A view of a CUDA stream, as cuda::stream_ref: copied freely, owns nothing. The stream must
/// outlive it.
class CudaStreamRef {
 public:
  /// Also of the default streams: cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread.
  CudaStreamRef(cudaStream_t stream) noexcept : stream_(stream) {}
  CudaStreamRef(int) = delete;
  CudaStreamRef(std::nullptr_t) = delete;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

  /// cudaSuccess when all work on it is done, cudaErrorNotReady while it is not, or why it failed.
  [[nodiscard]] cudaError_t query() const noexcept { return cudaStreamQuery(stream_); }
  /// Waits until all work on it is done. Throws Error (driver).
  void sync() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 protected:
  cudaStream_t stream_;
};

/// Owns a CUDA stream, which it destroys; as cuda::stream. Moved from, it owns none.
class CudaStream : public CudaStreamRef {
 public:
  /// Makes one on the current device that does not wait for the default stream. Throws Error.
  CudaStream() : CudaStreamRef(cudaStream_t{}) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  /// Takes over `stream`, which is no default stream.
  [[nodiscard]] static CudaStream from_native_handle(cudaStream_t stream) noexcept {
    return CudaStream(stream);
  }
  static CudaStream from_native_handle(int) = delete;
  static CudaStream from_native_handle(std::nullptr_t) = delete;

  CudaStream(CudaStream&& other) noexcept : CudaStreamRef(other.release()) {}
  ~CudaStream() {
    if (stream_ != nullptr) log_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }

  /// Gives the stream up to the caller, who destroys it.
  [[nodiscard]] cudaStream_t release() noexcept { return std::exchange(stream_, nullptr); }

 private:
  explicit CudaStream(cudaStream_t stream) noexcept : CudaStreamRef(stream) {}
};

}  // namespace offload::gpu
