#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "kernels/batch.hpp"

/// serve_in_batch as a kernel that a graph launches.
namespace offload::kernels {

/// Adds to `graph` a kernel that answers `batch`, whose memory is the GPU's, with the service
/// called so, once `after` is done. cudaErrorInvalidValue for an unknown one.
cudaError_t add_batch_kernel(std::string_view service, const Batch& batch, cudaGraph_t graph,
                             cudaGraphNode_t after, cudaGraphNode_t* node);

}  // namespace offload::kernels
