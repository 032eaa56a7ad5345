#include "backend/backend.hpp"
#include "core/error.hpp"

namespace offload::backend {

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&, const Services&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA back end");
}

std::unique_ptr<Backend> make_graph_backend(const GraphOptions&, const Services&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA back end");
}

std::string gpu_architecture(const std::string&) {
  throw core::Error(core::ErrorCode::not_supported, "this build has no CUDA back end");
}

}  // namespace offload::backend
