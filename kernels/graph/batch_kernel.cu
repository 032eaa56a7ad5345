#include <algorithm>

#include "kernels/graph/batch_kernel.hpp"
#include "kernels/group.hpp"
#include "kernels/services.hpp"

namespace offload::kernels {
namespace {

/// Threads of a block where messages may be long: FlatResponse then has 64 KiB of reads under way
/// at once. A message short enough for packets has no work for more than a warp.
constexpr unsigned kThreadsForLong = 512;
constexpr unsigned kThreadsForShort = 32;

template <class Service>
__global__ void __launch_bounds__(kThreadsForLong) serve_launch(Batch batch) {
  serve_in_batch(ThreadBlock{}, batch, blockIdx.x, Service{});
}

}  // namespace

cudaError_t add_batch_kernel(std::string_view service, const Batch& batch, cudaGraph_t graph,
                             cudaGraphNode_t after, cudaGraphNode_t* node) {
  cudaKernelNodeParams kernel{};
  // A block for each message that fits.
  kernel.gridDim = dim3(std::clamp(batch.capacity / kLeastRoom, 1U, kMostInBatch));
  kernel.blockDim = dim3(batch.max_length > kMaxPacketPayload ? kThreadsForLong : kThreadsForShort);
  void* arguments[] = {const_cast<Batch*>(&batch)};
  kernel.kernelParams = arguments;
  with_service(service, [&](auto chosen) {
    kernel.func = reinterpret_cast<void*>(serve_launch<decltype(chosen)>);
  });
  if (kernel.func == nullptr) return cudaErrorInvalidValue;
  return cudaGraphAddKernelNode(node, graph, &after, 1, &kernel);
}

}  // namespace offload::kernels
