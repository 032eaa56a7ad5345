#include <algorithm>
#include <string>
#include <utility>

#include "backend/channel_thread.hpp"
#include "core/error.hpp"
#include "kernels/serve.hpp"

namespace offload::backend {
namespace {

/// The number of requests that are served before the server is woken; lower if they may be long.
constexpr std::uint32_t kBatch = 64;
constexpr std::uint32_t kBatchBytes = 256 * 1024;

/// One channel and the thread that serves it.
class CpuWorker final : public ChannelThread {
 public:
  /// `service` outlives it.
  CpuWorker(const channel::SharedChannel& channel, core::Duration spin,
            const ServiceObject& service, SharedChannelTimes times)
      : ChannelThread(channel, spin, std::move(times)),
        respond_(service.interface().respond),
        object_(service.get()),
        batch_(std::clamp(kBatchBytes / channel->view().layout.max_length, 1U, kBatch)) {}
  ~CpuWorker() { stop(); }
  CpuWorker& operator=(CpuWorker&&) = delete;

 private:
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_thread;
  }

  bool poll() override {
    std::uint32_t served = 0;
    for (; served < batch_; ++served) {
      const auto received =
          writer() == nullptr
              ? kernels::receive(kernels::SingleLane{}, channel(), sequence_, staging_)
              : kernels::receive<true>(kernels::SingleLane{}, channel(), sequence_, staging_);
      if (received.arrival == kernels::Arrival::none) break;
      if (sequence_ % ChannelTimes::kSampled == ChannelTimes::kSampled - 1) {
        const auto began = core::Clock::now();
        respond(received);
        times().add_sample(began, core::Clock::now(), received.length);
      } else {
        respond(received);
      }
      ++sequence_;
    }
    if (served != 0) ring();
    return served != 0;
  }

  void respond(kernels::Received received) {
    const auto response = respond_(object_, &channel(), sequence_, &staging_, received);
    if (response.outcome == kernels::Outcome::refused) report(sequence_);
    if (writer() == nullptr) return;
    // Ignored: posting fails only if the queue is in error, which its emulator reports.
    static_cast<void>(kernels::rdma::write_response(kernels::SingleLane{}, writer()->slots,
                                                    channel(), sequence_, response.header));
  }

  decltype(kernels::ServiceInterface::respond) respond_;
  const void* object_;
  std::uint32_t batch_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(core::Duration spin, const Services& services)
      : spin_(spin), services_(services, kernels::kOnCpu) {}

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] channel::Wakeup wakeup() const override { return channel::Wakeup::doorbell; }
  [[nodiscard]] bool posts_responses() const override { return true; }

  void start(std::vector<ServedChannel> channels) override {
    for (const auto& [channel, service] : channels) {
      channel::start_regions(*channel);
      workers_.push_back(std::make_unique<CpuWorker>(
          channel, spin_, services_.find(service, channel->view().layout),
          times_of(workers_.size())));
    }
    for (auto& worker : workers_) worker->start();
  }

  bool stop(core::Duration) override {
    // Bounded, because each turn of a thread is.
    workers_.clear();
    return true;
  }

  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override {
    return heartbeats_of(workers_);
  }
  std::vector<Fault> check() override { return take_faults_of(workers_); }

 private:
  core::Duration spin_;
  ServiceObjects services_;
  std::vector<std::unique_ptr<CpuWorker>> workers_;  ///< destroyed before it
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(core::Duration spin, const Services& services) {
  return std::make_unique<CpuBackend>(spin, services);
}

}  // namespace offload::backend
