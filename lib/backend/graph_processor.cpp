#include "backend/graph_processor.hpp"

#include <algorithm>
#include <bit>

#include "kernels/graph/batch.hpp"

namespace offload::backend {
namespace {

/// Payload bytes of the smallest size class: one short message.
constexpr std::uint32_t kLeastClass = 64;
/// The least room of a batch: some microseconds of a copy. More at once would save little, and the
/// host works on one batch while the GPU has another.
constexpr std::uint32_t kBatchBytes = 256 * 1024;

/// Returns the size class for `bytes` of payloads, at least 1.
std::uint32_t class_of(std::uint32_t bytes) {
  return static_cast<std::uint32_t>(std::bit_width((bytes - 1) / kLeastClass));
}

/// Destroys a CUDA graph that was built.
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept {
    gpu::log_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
};

}  // namespace

GraphProcessor::Slot::Slot(std::uint32_t capacity)
    : requests(sizeof(kernels::RequestBatch) + capacity + kernels::kSlack),
      responses(sizeof(kernels::ResponseBatch) + capacity + kernels::kSlack),
      device_requests(sizeof(kernels::RequestBatch) + capacity + kernels::kSlack),
      device_responses(sizeof(kernels::ResponseBatch) + capacity + kernels::kSlack) {}

GraphProcessor::GraphProcessor(int device, const ServiceObject& service, std::uint32_t max_length,
                               std::uint32_t batches)
    : device_(device),
      capacity_(std::bit_ceil(std::max(kBatchBytes, kernels::room_of_slot(max_length)))) {
  for (std::uint32_t i = 0; i < batches; ++i) {
    Slot& slot = *slots_.emplace_back(std::make_unique<Slot>(capacity_));
    for (std::uint32_t bytes = kLeastClass; bytes <= capacity_; bytes *= 2) {
      slot.graphs.push_back(make_graph(slot, service, max_length, bytes));
      // Otherwise the first launch of each graph would take longer.
      gpu::check_cuda(cudaGraphUpload(slot.graphs.back().get(), slot.stream.get()),
                      "cudaGraphUpload");
    }
    slot.stream.sync();
  }
}

/// Makes a graph of three nodes, copy in, kernel, copy out, for the entries and `bytes` of
/// payloads.
GraphExec GraphProcessor::make_graph(const Slot& slot, const ServiceObject& service,
                                     std::uint32_t max_length, std::uint32_t bytes) {
  cudaGraph_t made = nullptr;
  gpu::check_cuda(cudaGraphCreate(&made, 0), "cudaGraphCreate");
  const std::unique_ptr<CUgraph_st, DestroyGraph> graph(made);
  cudaGraphNode_t copy = nullptr;
  gpu::check_cuda(
      cudaGraphAddMemcpyNode1D(&copy, graph.get(), nullptr, 0, slot.device_requests.get(),
                               slot.requests.get(), sizeof(kernels::RequestBatch) + bytes,
                               cudaMemcpyHostToDevice),
      "cudaGraphAddMemcpyNode1D");
  kernels::LaunchBatch batch{};
  batch.requests = reinterpret_cast<const kernels::RequestBatch*>(slot.device_requests.get());
  batch.responses = reinterpret_cast<kernels::ResponseBatch*>(slot.device_responses.get());
  batch.capacity = bytes;
  batch.max_length = max_length;
  cudaGraphNode_t kernel = nullptr;
  gpu::check_cuda(static_cast<cudaError_t>(service.interface().add_batch_kernel(
                      service.get(), &batch, graph.get(), copy, &kernel)),
                  "cudaGraphAddKernelNode");
  cudaGraphNode_t copy_back = nullptr;
  gpu::check_cuda(
      cudaGraphAddMemcpyNode1D(&copy_back, graph.get(), &kernel, 1, slot.responses.get(),
                               slot.device_responses.get(), sizeof(kernels::ResponseBatch) + bytes,
                               cudaMemcpyDeviceToHost),
      "cudaGraphAddMemcpyNode1D");
  cudaGraphExec_t exec = nullptr;
  gpu::check_cuda(cudaGraphInstantiateWithFlags(&exec, graph.get(), 0), "cudaGraphInstantiate");
  return GraphExec(exec);
}

bool GraphProcessor::launch(std::uint32_t i, std::uint32_t bytes) {
  const Slot& slot = *slots_[i];
  return status_ == cudaSuccess &&
         note(cudaGraphLaunch(slot.graphs[class_of(bytes)].get(), slot.stream.get()),
              "cudaGraphLaunch");
}

BatchProcessor::State GraphProcessor::look(std::uint32_t i) {
  const cudaError_t status = slots_[i]->stream.query();
  if (status == cudaErrorNotReady) return State::running;
  return note(status, "the batch") ? State::done : State::failed;
}

/// Returns whether `status` is a success, and keeps the first failure.
bool GraphProcessor::note(cudaError_t status, const char* action) {
  if (status == cudaSuccess) return true;
  if (status_ == cudaSuccess) {
    status_ = status;
    failed_action_ = action;
  }
  return false;
}

}  // namespace offload::backend
