#include "core/error.hpp"
#include "gpu/backend.hpp"

namespace offload::gpu {

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA back end");
}

std::unique_ptr<Backend> make_graph_backend(const GraphOptions&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA back end");
}

}  // namespace offload::gpu
