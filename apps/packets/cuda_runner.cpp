#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "apps/packets/lane_kernel.hpp"
#include "apps/packets/runner.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"
#include "packets/gpu_image.hpp"

namespace offload::packets {
namespace {

constexpr std::uint64_t kLookAtStopNs = 1'000'000;
/// The kernel ends within its longest wait of a second.
constexpr core::Duration kStopTime = std::chrono::seconds(5);
constexpr int kHangs = 3;

/// One persistent kernel, a warp for each queue, which reads frames and rings where Linux writes
/// them. Data that only the GPU uses is in its memory: the order of rings, frames to send.
class CudaRunner final : public Runner {
 public:
  CudaRunner(packets::FrameMemory& memory, packets::Port& port, const Plan& plan)
      : image_(memory, port),
        stop_(1),
        counts_(image_.queue_count() * kLanesOfWarp),
        items_(image_.queue_count()),
        works_(image_.queue_count()),
        frames_(std::max<std::size_t>(plan.frames.size(), 1)),
        lengths_(std::max<std::size_t>(plan.lengths.size(), 1)),
        host_(1) {
    gpu::check_cuda(cudaMemcpy(host_.get(), &plan.host, sizeof plan.host, cudaMemcpyHostToDevice),
                    "cudaMemcpy of the host's addresses");
    std::ranges::copy(plan.frames, frames_.get());
    std::ranges::copy(plan.lengths, lengths_.get());
    const auto* const queues = image_.queues();
    for (std::size_t i = 0; i < image_.queue_count(); ++i) {
      LaneWork& work = works_.get()[i];
      work = make_work(plan, &queues[i], stop_.get(), counts_.get() + i * kLanesOfWarp,
                       items_.get()[i]);
      work.templates.frames = frames_.get();
      work.templates.lengths = lengths_.get();
      work.host = host_.get();
      work.wait_ns = kLookAtStopNs;
      semaphores_.push_back(items_.get()[i].view());
    }
  }
  ~CudaRunner() override {
    try {
      CudaRunner::stop();
    } catch (const core::Error&) {
      // The kernel's end was asked for; that it failed was said by the caller who looked before.
    }
  }

  void start() override {
    // The kernel's stream is non-blocking: it does not wait for the copies before.
    gpu::CudaStreamRef(cudaStreamLegacy).sync();
    gpu::check_cuda(launch_lanes(works_.get(), image_.queue_count(), stream_.get()), "launch");
  }
  void stop() override {
    // Relaxed: the end of the kernel orders what matters.
    __atomic_store_n(stop_.get(), 1U, __ATOMIC_RELAXED);
    const auto deadline = core::Clock::now() + kStopTime;
    while (!is_done()) {
      if (core::Clock::now() > deadline) {
        // To free what it uses would wait for it forever, and so would an orderly end.
        core::print_error("offload-packets", "the kernel does not end");
        ::_exit(kHangs);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  bool is_done() override {
    const cudaError_t state = stream_.query();
    if (state != cudaErrorNotReady) gpu::check_cuda(state, "the kernel");
    return state == cudaSuccess;
  }
  [[nodiscard]] LaneCounts counts() const override {
    return sum_of({counts_.get(), image_.queue_count() * kLanesOfWarp});
  }
  [[nodiscard]] std::span<const kernels::packets::Semaphore> items() const override {
    return semaphores_;
  }

 private:
  gpu::PacketImage image_;
  gpu::PinnedArray<std::uint32_t> stop_;
  gpu::PinnedArray<LaneCounts> counts_;
  gpu::PinnedArray<QueueItems> items_;
  gpu::PinnedArray<LaneWork> works_;
  gpu::PinnedArray<std::uint8_t> frames_;
  gpu::PinnedArray<std::uint32_t> lengths_;
  gpu::DeviceArray<kernels::packets::HostAddresses> host_;  ///< there: it is read for each packet
  std::vector<kernels::packets::Semaphore> semaphores_;
  gpu::CudaStream stream_;
};

}  // namespace

std::unique_ptr<Runner> make_cuda_runner(packets::FrameMemory& memory, packets::Port& port,
                                         const Plan& plan) {
  return std::make_unique<CudaRunner>(memory, port, plan);
}

}  // namespace offload::packets
