#include <fmt/core.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "apps/worker/packets/runner.hpp"
#include "core/process/thread.hpp"
#include "packets/image.hpp"

namespace offload::worker {
namespace {

using kernels::packets::DatagramCounts;
using kernels::packets::DatagramStaging;
using kernels::packets::DatagramState;
using kernels::packets::DatagramWork;

constexpr std::uint32_t kBatch = 32;
/// The time for which a thread without datagrams sleeps before it checks its stop word.
constexpr int kSleepMs = 20;

class CpuDatagrams final : public DatagramRunner {
 public:
  CpuDatagrams(const Options& options, const backend::Services& services)
      : spin_(options.spin),
        objects_(services, kernels::kOnCpu),
        service_(objects_.find(options.udp_service)) {}
  ~CpuDatagrams() override { static_cast<void>(CpuDatagrams::stop()); }

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] bool needs_waking() const noexcept override { return false; }

  void start(packets::FrameMemory& memory, packets::Port& port, std::uint32_t mtu,
             const kernels::packets::HostAddresses& host) override {
    const packets::Port* const ports[] = {&port};
    image_.emplace(memory, ports);
    counts_.resize(image_->queues().size());
    const auto spin = static_cast<std::uint64_t>(spin_.count());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      works_.push_back({&image_->queues()[i], &stop_, &counts_[i], spin, kBatch, mtu, &host});
    }
    threads_.reserve(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      threads_.push_back(core::start_thread<std::jthread>(fmt::format("udp-{}", i),
                                                          [this, i, &port] { serve(i, port); }));
    }
  }
  bool stop() override {
    // Relaxed: the join orders what matters.
    __atomic_store_n(&stop_, 1U, __ATOMIC_RELAXED);
    threads_.clear();
    return true;
  }
  bool is_serving() override { return !has_left_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::span<const DatagramCounts> counts() const override { return counts_; }

 private:
  void serve(std::size_t i, packets::Port& port) {
    const auto staging = std::make_unique<DatagramStaging>();
    DatagramState state;
    // Its fill ring is that of all queues of the hardware queue.
    const std::size_t first = i - port.queues()[i].number;
    while (__atomic_load_n(&stop_, __ATOMIC_RELAXED) == 0) {
      bool had_work = false;
      if (!service_.interface().serve_datagrams(service_.get(), &works_[i], &state, staging.get(),
                                                &had_work)) {
        has_left_.store(true, std::memory_order_relaxed);  // says nothing but that
        return;
      }
      port.wake(i);
      if (first != i) port.wake(first);
      if (had_work) continue;
      pollfd readable{port.queues()[i].socket.fd(), POLLIN, 0};
      ::poll(&readable, 1, kSleepMs);
    }
  }

  core::Duration spin_;
  backend::ServiceObjects objects_;
  const backend::ServiceObject& service_;
  std::optional<packets::HostImage> image_;
  std::uint32_t stop_ = 0;
  std::vector<DatagramCounts> counts_;
  std::vector<DatagramWork> works_;
  std::atomic<bool> has_left_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<DatagramRunner> make_cpu_datagrams(const Options& options,
                                                   const backend::Services& services) {
  return std::make_unique<CpuDatagrams>(options, services);
}

}  // namespace offload::worker
