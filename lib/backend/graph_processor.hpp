#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/batch_processor.hpp"
#include "backend/services.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"

namespace offload::backend {

struct DestroyGraphExec {
  void operator()(cudaGraphExec_t exec) const noexcept {
    gpu::log_cuda(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  }
};
/// An executable CUDA graph, which can be launched any number of times.
using GraphExec = std::unique_ptr<CUgraphExec_st, DestroyGraphExec>;

/// A GPU that answers batches. Each batch is one launch of a graph of copy, kernel and copy, made
/// at the start for each size class: powers of two from kLeastClass on.
class GraphProcessor final : public BatchProcessor {
 public:
  /// Uses GPU `device`, the device of the calling thread and of `service`, for messages of up to
  /// `max_length` bytes. `service` outlives this object. Throws Error.
  GraphProcessor(int device, const ServiceObject& service, std::uint32_t max_length,
                 std::uint32_t batches);

  [[nodiscard]] std::uint32_t batches() const override {
    return static_cast<std::uint32_t>(slots_.size());
  }
  [[nodiscard]] std::uint32_t capacity() const override { return capacity_; }
  kernels::RequestBatch* requests(std::uint32_t i) override {
    return reinterpret_cast<kernels::RequestBatch*>(slots_[i]->requests.get());
  }
  kernels::ResponseBatch* responses(std::uint32_t i) override {
    return reinterpret_cast<kernels::ResponseBatch*>(slots_[i]->responses.get());
  }
  void start_thread() override { note(cudaSetDevice(device_), "cudaSetDevice"); }
  bool launch(std::uint32_t i, std::uint32_t bytes) override;
  State look(std::uint32_t i) override;
  [[nodiscard]] std::string failure() const override {
    return std::string(failed_action_) + ": " + cudaGetErrorString(status_);
  }

 private:
  /// The memory and graphs of one batch. It has its own stream, so that the copies of two batches
  /// overlap.
  struct Slot {
    explicit Slot(std::uint32_t capacity);
    gpu::PinnedArray<std::uint8_t> requests;
    gpu::PinnedArray<std::uint8_t> responses;
    gpu::DeviceArray<std::uint8_t> device_requests;
    gpu::DeviceArray<std::uint8_t> device_responses;
    gpu::CudaStream stream;
    std::vector<GraphExec> graphs;  ///< by size class
  };
  static GraphExec make_graph(const Slot& slot, const ServiceObject& service,
                              std::uint32_t max_length, std::uint32_t bytes);
  bool note(cudaError_t status, const char* action);

  int device_;
  std::uint32_t capacity_;
  std::vector<std::unique_ptr<Slot>> slots_;
  cudaError_t status_ = cudaSuccess;
  const char* failed_action_ = "";
};

}  // namespace offload::backend
