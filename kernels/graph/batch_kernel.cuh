#pragma once

#include <cuda_runtime.h>

#include "kernels/graph/batch.hpp"
#include "kernels/group.hpp"

/// The kernel that answers a batch, as a node of a CUDA graph.
namespace offload::kernels {

/// Threads of a block where messages may be long: FlatResponse then has 64 KiB of reads under way
/// at once. A message short enough for packets has no work for more than a warp.
inline constexpr unsigned kThreadsForLong = 512;
inline constexpr unsigned kThreadsForShort = 32;

template <class Service>
__global__ void __launch_bounds__(kThreadsForLong)
    serve_launch(LaunchBatch batch, const __grid_constant__ Service service) {
  serve_in_batch(ThreadBlock{}, batch, blockIdx.x, service);
}

/// Adds a node to `graph` that lets `service` answer `batch`, in the GPU's memory, after the node
/// `after`.
template <class Service>
cudaError_t add_batch_kernel(const Service& service, const LaunchBatch& batch, cudaGraph_t graph,
                             cudaGraphNode_t after, cudaGraphNode_t* node) {
  // A block for each message that fits.
  const std::uint32_t blocks = batch.capacity / kLeastRoom;
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(serve_launch<Service>);
  kernel.gridDim = dim3(blocks == 0 ? 1 : blocks < kMostInBatch ? blocks : kMostInBatch);
  kernel.blockDim = dim3(batch.max_length > kMaxPacketPayload ? kThreadsForLong : kThreadsForShort);
  void* arguments[] = {const_cast<LaunchBatch*>(&batch), const_cast<Service*>(&service)};
  kernel.kernelParams = arguments;
  return cudaGraphAddKernelNode(node, graph, &after, 1, &kernel);
}

}  // namespace offload::kernels
