#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/device/run_lanes.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/cuda_ranges.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/error.hpp"
#include "gpu/register_pages.hpp"

namespace offload::rdma_tool {
namespace {

class GpuLauncher final : public LaneLauncher {
 public:
  explicit GpuLauncher(const std::string& gpu) : device_(gpu::open_gpu(gpu)) {}
  ~GpuLauncher() override { end(); }

  [[nodiscard]] std::string name() const override { return "a kernel on " + device_.describe(); }
  [[nodiscard]] memory::Range allocate(std::size_t bytes) override {
    return gpu::make_pinned_range(bytes);
  }
  [[nodiscard]] std::shared_ptr<void> allocate_own(std::size_t bytes) override {
    const memory::Range range = gpu::make_device_range(bytes);
    return {range.owner, range.address};
  }
  [[nodiscard]] std::function<void*(void*)> register_mapper() override {
    return [this](void* address) { return registers_.seen_at(address); };
  }
  [[nodiscard]] memory::Range allocate_on_gpu(std::size_t bytes) override {
    return gpu::make_exported_range(bytes);
  }

  void start(std::span<LaneRun> runs) override {
    unsigned most = 0;
    gpu::check_cuda(count_resident_lanes(most), "query how many lanes run at once");
    // Those that wait for a place would not answer their peers.
    if (runs.size() > most) {
      throw core::Error(core::ErrorCode::invalid_value, std::to_string(runs.size()) +
                                                            " lanes: the GPU runs " +
                                                            std::to_string(most) + " at once");
    }
    gpu::check_cuda(launch_lanes(runs.data(), static_cast<unsigned>(runs.size()), stream_.get()),
                    "launch the lanes");
  }
  [[nodiscard]] bool finished() override {
    const cudaError_t status = stream_.query();
    if (status != cudaErrorNotReady) gpu::check_cuda(status, "run the lanes");
    return status == cudaSuccess;
  }
  void join() noexcept override { end(); }

 private:
  void end() noexcept { gpu::log_cuda(cudaStreamSynchronize(stream_.get()), "wait for the lanes"); }

  device::Device device_;
  gpu::RegisterPages registers_;
  gpu::CudaStream stream_;
};

}  // namespace

std::unique_ptr<LaneLauncher> make_gpu_launcher(const std::string& gpu) {
  return std::make_unique<GpuLauncher>(gpu);
}

}  // namespace offload::rdma_tool
