#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "doca/gpu/gpu.hpp"
#include "doca/include/doca_gpunetio_dev_comch.cuh"

namespace offload::doca {

/// The rings that a consumer or producer shares with a kernel (doca_gpunetio_dev_comch.cuh). The
/// requests of a kernel are untrusted: they are copied, then checked.
class GpuRing {
 public:
  /// For `count` entries, or a few more. Throws Error.
  GpuRing(doca_gpu& gpu, std::uint32_t count);

  /// The queue in the GPU's memory, by which its kernels name it.
  [[nodiscard]] void* handle() const noexcept { return queue_.gpu; }

  // One thread at a time.

  /// Ends all calls of kernels with that error.
  void set_state(doca_error_t error) noexcept;
  /// Returns a copy of the next request; nothing if there is none. Throws Error (invalid_value) if
  /// there are more requests than entries.
  std::optional<offload_gpu_comch_request> next_request();
  /// Writes an event. There is a request that has none yet.
  void write(const offload_gpu_comch_event& event) noexcept;
  /// Shows the events to the kernel.
  void publish() noexcept;

 private:
  doca_gpu::Piece shared_;
  doca_gpu::Piece queue_;
  offload_gpu_comch_words* words_;
  offload_gpu_comch_request* requests_;
  offload_gpu_comch_event* events_;
  std::uint32_t mask_;
  std::uint32_t read_ = 0;     ///< requests
  std::uint32_t written_ = 0;  ///< events
  std::uint32_t state_ = 0;
};

}  // namespace offload::doca
