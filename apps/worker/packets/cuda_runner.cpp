#include <thread>

#include "apps/worker/packets/runner.hpp"
#include "core/clock.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"
#include "packets/gpu_image.hpp"

namespace offload::worker {
namespace {

using kernels::packets::DatagramCounts;
using kernels::packets::DatagramWork;
using kernels::packets::HostAddresses;

/// A warp checks its stop word between waits of this length.
constexpr std::uint64_t kWaitNs = 1'000'000;
/// The longest wait of a warp in a ring is a second.
constexpr core::Duration kStopTime = std::chrono::seconds(3);

/// The objects that the kernel uses. Members end in reverse order: the streams first.
struct CudaDatagramRun {
  CudaDatagramRun(packets::FrameMemory& memory, packets::Port& port, const HostAddresses& addresses)
      : image(memory, port),
        stop(1),
        one(1),
        counts(image.queue_count()),
        works(image.queue_count()),
        host(1) {
    gpu::check_cuda(cudaMemcpy(host.get(), &addresses, sizeof addresses, cudaMemcpyHostToDevice),
                    "cudaMemcpy of the host's addresses");
  }

  gpu::PacketImage image;
  gpu::DeviceArray<std::uint32_t> stop;  ///< there, so that a look costs no PCIe transfer
  gpu::PinnedArray<std::uint32_t> one;
  gpu::PinnedArray<DatagramCounts> counts;
  gpu::PinnedArray<DatagramWork> works;
  gpu::DeviceArray<HostAddresses> host;  ///< there: it is read for each datagram
  gpu::CudaStream control;
  gpu::CudaStream kernel;
};

class CudaDatagrams final : public DatagramRunner {
 public:
  CudaDatagrams(const Options& options, const backend::Services& services)
      : device_(gpu::open_gpu(
            options.gpu_pci_addresses.empty() ? std::string() : options.gpu_pci_addresses.front())),
        objects_(services, static_cast<std::int32_t>(device_.index)),
        service_(objects_.find(options.udp_service)) {}
  ~CudaDatagrams() override {
    try {
      if (CudaDatagrams::stop()) return;
    } catch (const core::Error&) {
      // A kernel has failed, which is_serving() has reported.
      return;
    }
    // A kernel still uses them.
    static_cast<void>(run_.release());
    objects_.leave_behind();
  }

  [[nodiscard]] std::string name() const override { return "cuda " + device_.describe(); }
  [[nodiscard]] bool needs_waking() const noexcept override { return true; }

  void start(packets::FrameMemory& memory, packets::Port& port, std::uint32_t mtu,
             const HostAddresses& host) override {
    run_ = std::make_unique<CudaDatagramRun>(memory, port, host);
    const auto count = static_cast<std::uint32_t>(run_->image.queue_count());
    for (std::uint32_t i = 0; i < count; ++i) {
      run_->works.get()[i] = {
          run_->image.queues() + i, run_->stop.get(), run_->counts.get() + i, kWaitNs, 0, mtu,
          run_->host.get()};
    }
    *run_->one.get() = 1;
    // The kernel's stream is non-blocking: it does not wait for the copies before.
    gpu::CudaStreamRef(cudaStreamLegacy).sync();
    gpu::check_cuda(static_cast<cudaError_t>(service_.interface().launch_datagrams(
                        service_.get(), run_->works.get(), count, run_->kernel.get())),
                    "launch of the kernel for datagrams");
  }
  bool stop() override {
    if (!run_) return true;
    gpu::check_cuda(cudaMemcpyAsync(run_->stop.get(), run_->one.get(), sizeof(std::uint32_t),
                                    cudaMemcpyHostToDevice, run_->control.get()),
                    "cudaMemcpyAsync of the stop word");
    const auto deadline = core::Clock::now() + kStopTime;
    while (is_serving()) {
      if (core::Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
  }
  bool is_serving() override {
    const cudaError_t state = run_->kernel.query();
    if (state != cudaErrorNotReady) gpu::check_cuda(state, "the kernel for datagrams");
    return state == cudaErrorNotReady;
  }
  [[nodiscard]] std::span<const DatagramCounts> counts() const override {
    return {run_->counts.get(), run_->image.queue_count()};
  }

 private:
  device::Device device_;
  backend::ServiceObjects objects_;
  const backend::ServiceObject& service_;
  std::unique_ptr<CudaDatagramRun> run_;
};

}  // namespace

std::unique_ptr<DatagramRunner> make_cuda_datagrams(const Options& options,
                                                    const backend::Services& services) {
  return std::make_unique<CudaDatagrams>(options, services);
}

}  // namespace offload::worker
