#include <algorithm>
#include <string>
#include <utility>

#include "backend/channel_thread.hpp"
#include "core/error.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"

namespace offload::backend {
namespace {

/// Requests that are served before the server is woken; fewer where they may be long.
constexpr std::uint32_t kBatch = 64;
constexpr std::uint32_t kBatchBytes = 256 * 1024;

/// One channel and the thread that serves it.
class CpuWorker final : public ChannelThread {
 public:
  CpuWorker(const channel::SharedChannel& channel, core::Duration spin, SharedChannelTimes times)
      : ChannelThread(channel, spin, std::move(times)),
        batch_(std::clamp(kBatchBytes / channel->view().layout.max_length, 1U, kBatch)) {}
  ~CpuWorker() { stop(); }
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  template <class Service>
  void start(Service) {
    serve_batch_ = [](CpuWorker& self) { return self.serve_batch(Service{}); };
    ChannelThread::start();
  }

 private:
  bool poll() override { return serve_batch_(*this); }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_thread;
  }

  template <class Service>
  bool serve_batch(Service service) {
    std::uint32_t served = 0;
    for (; served < batch_; ++served) {
      const auto received =
          writer() == nullptr
              ? kernels::receive(kernels::SingleLane{}, channel(), sequence_, staging_)
              : kernels::receive<true>(kernels::SingleLane{}, channel(), sequence_, staging_);
      if (received.arrival == kernels::Arrival::none) break;
      if (sequence_ % ChannelTimes::kSampled == ChannelTimes::kSampled - 1) {
        const auto began = core::Clock::now();
        respond(service, received);
        times().add_sample(began, core::Clock::now(), received.length);
      } else {
        respond(service, received);
      }
      ++sequence_;
    }
    if (served != 0) ring();
    return served != 0;
  }

  template <class Service>
  void respond(Service service, kernels::Received received) {
    const auto response =
        kernels::respond(kernels::SingleLane{}, channel(), sequence_, service, staging_, received);
    if (response.outcome == kernels::Outcome::refused) report(sequence_);
    if (writer() == nullptr) return;
    // What keeps it from being posted has broken the queue, and its proxy says so.
    static_cast<void>(kernels::rdma::write_response(kernels::SingleLane{}, writer()->slots,
                                                    channel(), sequence_, response.header));
  }

  std::uint32_t batch_;
  bool (*serve_batch_)(CpuWorker&) = nullptr;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(core::Duration spin) : spin_(spin) {}

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] channel::Wakeup wakeup() const override { return channel::Wakeup::doorbell; }
  [[nodiscard]] bool posts_responses() const override { return true; }

  void start(std::vector<channel::SharedChannel> channels, const std::string& service) override {
    for (const channel::SharedChannel& channel : channels) {
      channel::start_regions(*channel);
      workers_.push_back(std::make_unique<CpuWorker>(channel, spin_, times_of(workers_.size())));
    }
    const bool known = kernels::with_service(service, [&](auto chosen) {
      for (auto& worker : workers_) worker->start(chosen);
    });
    if (!known) throw core::Error(core::ErrorCode::not_found, "no service '" + service + "'");
  }

  bool stop(core::Duration) override {
    // Bounded, as each thread's turn is.
    workers_.clear();
    return true;
  }

  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override {
    return heartbeats_of(workers_);
  }
  std::vector<Fault> check() override { return take_faults_of(workers_); }

 private:
  core::Duration spin_;
  std::vector<std::unique_ptr<CpuWorker>> workers_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(core::Duration spin) {
  return std::make_unique<CpuBackend>(spin);
}

}  // namespace offload::backend
