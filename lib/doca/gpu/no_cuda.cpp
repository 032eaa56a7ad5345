#include "core/error.hpp"
#include "doca/gpu/gpu.hpp"

namespace offload::doca {

std::unique_ptr<doca_gpu> open_cuda_gpu(const std::string&) {
  throw core::Error(core::ErrorCode::not_supported, "the library is built without CUDA");
}

}  // namespace offload::doca
