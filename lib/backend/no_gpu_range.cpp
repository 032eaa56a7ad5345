#include "backend/gpu_range.hpp"
#include "core/error.hpp"

namespace offload::backend {

memory::Range make_gpu_range(const device::Device&, std::size_t) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA");
}

}  // namespace offload::backend
