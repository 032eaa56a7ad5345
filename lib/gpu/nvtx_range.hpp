#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define OFFLOAD_HAS_NVTX 1
#else
#define OFFLOAD_HAS_NVTX 0
#endif

namespace offload::gpu {

/// A range of the calling thread that profilers of NVIDIA's show, such as Nsight Systems. Without
/// one it costs a load and a jump; without NVTX at build time, nothing.
class NvtxRange {
 public:
  /// `name` is copied where it is wanted.
  explicit NvtxRange([[maybe_unused]] const char* name) noexcept {
#if OFFLOAD_HAS_NVTX
    nvtxRangePushA(name);
#endif
  }
  NvtxRange& operator=(NvtxRange&&) = delete;
  ~NvtxRange() {
#if OFFLOAD_HAS_NVTX
    nvtxRangePop();
#endif
  }
};

}  // namespace offload::gpu
