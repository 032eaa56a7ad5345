#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "doca/gpu/gpu.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/gpu/ring.hpp"
#include "doca/mmap.hpp"

namespace offload::doca {

/// Carries out the copies that kernels ask for, in order (doca_gpunetio_dev_dma.cuh). One thread
/// makes, ends and destroys it.
class GpuCopies final : GpuQueue {
 public:
  /// Throws Error.
  explicit GpuCopies(doca_gpu& gpu);
  GpuCopies& operator=(GpuCopies&&) = delete;
  ~GpuCopies() { end(); }

  [[nodiscard]] void* handle() const noexcept { return ring_.handle(); }
  /// Ends the calls of kernels with DOCA_ERROR_BAD_STATE; copies that have not begun are dropped.
  void end() noexcept;

 private:
  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override;
  void fail(const char* why) noexcept override;
  void begin_copy(const offload_gpu_comch_request& request);

  GpuUse gpu_;
  GpuMover& mover_;
  GpuRing ring_;
  bool has_ended_ = false;
  bool has_failed_ = false;
  std::deque<MemoryUse> under_way_;  ///< two for each copy
};

}  // namespace offload::doca
