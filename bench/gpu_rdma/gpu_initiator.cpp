#include <vector>

#include "bench/gpu_rdma/initiator.hpp"
#include "bench/gpu_rdma/run_load.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"

namespace offload::bench {
namespace {

class GpuInitiator final : public Initiator {
 public:
  void* allocate(std::size_t bytes) override { return pinned_.emplace_back(bytes).get(); }
  void* allocate_own(std::size_t bytes) override { return own_.emplace_back(bytes).get(); }
  void clear() override {
    pinned_.clear();
    own_.clear();
  }
  void start(const Load& load, std::uint32_t groups) override {
    gpu::check_cuda(launch_load(load, groups, stream_.get()), "launch");
  }
  void join() override { stream_.sync(); }

 private:
  gpu::CudaStream stream_;
  std::vector<gpu::PinnedArray<std::uint8_t>> pinned_;
  std::vector<gpu::DeviceArray<std::uint8_t>> own_;
};

}  // namespace

std::unique_ptr<Initiator> make_gpu_initiator() {
  return std::make_unique<GpuInitiator>();
}

}  // namespace offload::bench
