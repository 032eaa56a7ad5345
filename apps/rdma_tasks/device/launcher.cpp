#include "apps/rdma_tasks/device/launcher.hpp"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "apps/rdma_tasks/device/lane_body.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/thread.hpp"

namespace offload::rdma_tool {
namespace {

class CpuLauncher final : public LaneLauncher {
 public:
  /// `why`: the reason for which no GPU runs the lanes.
  explicit CpuLauncher(std::string why) : why_(std::move(why)) {}
  ~CpuLauncher() override { end(); }

  [[nodiscard]] std::string name() const override { return "device functions on CPU threads"; }
  [[nodiscard]] memory::Range allocate(std::size_t bytes) override {
    return memory::allocate_range(bytes);
  }
  [[nodiscard]] memory::Range allocate_on_gpu(std::size_t) override {
    throw core::Error(core::ErrorCode::not_found, why_);
  }
  [[nodiscard]] std::shared_ptr<void> allocate_own(std::size_t bytes) override {
    const memory::Range range = memory::allocate_range(bytes);
    return {range.owner, range.address};
  }

  void start(std::span<LaneRun> runs) override {
    finished_.store(0, std::memory_order_relaxed);  // the threads' start orders it
    threads_.reserve(runs.size());
    for (LaneRun& run : runs) {
      threads_.push_back(core::start_thread("lane", [this, &run] {
        run_lane(kernels::SingleLane{}, run);
        finished_.fetch_add(1, std::memory_order_release);
      }));
    }
  }
  [[nodiscard]] bool finished() override {
    return finished_.load(std::memory_order_acquire) == threads_.size();
  }
  void join() noexcept override { end(); }

 private:
  void end() noexcept {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::string why_;
  std::vector<std::thread> threads_;
  std::atomic<std::size_t> finished_{0};  ///< release by a thread that exits, acquire in finished()
};

}  // namespace

std::unique_ptr<LaneLauncher> make_cpu_launcher() {
  return std::make_unique<CpuLauncher>("lanes are threads");
}

std::unique_ptr<LaneLauncher> make_launcher(const std::string& gpu) {
  std::string why = "--gpu none";
  try {
    if (gpu != kNoGpu) {
      auto launcher = make_gpu_launcher(gpu);
      core::log_info("operations are issued by {}", launcher->name());
      return launcher;
    }
  } catch (const core::Error& error) {
    if (!gpu.empty()) throw;
    why = error.what();
  }
  auto launcher = std::make_unique<CpuLauncher>(why);
  core::log_info("operations are issued by {}, not by a kernel: {}", launcher->name(), why);
  return launcher;
}

}  // namespace offload::rdma_tool
