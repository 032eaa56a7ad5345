#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "kernels/graph/batch.hpp"

/// The kernel that answers a batch, as a node of a CUDA graph.
namespace offload::kernels {

/// Adds a node to `graph` that answers `batch`, in the GPU's memory, with the service of that name,
/// after the node `after`. cudaErrorInvalidValue for an unknown service.
cudaError_t add_batch_kernel(std::string_view service, const Batch& batch, cudaGraph_t graph,
                             cudaGraphNode_t after, cudaGraphNode_t* node);

}  // namespace offload::kernels
