#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "gpu/backend.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "progress/engine.hpp"

namespace offload::gpu {
namespace {

/// What is served before the server is told: so many requests, fewer where they may be long.
constexpr std::uint32_t kBatch = 64;
constexpr std::uint32_t kBatchBytes = 256 * 1024;
/// How long a thread sleeps at most; it is woken by the doorbell or by stop.
constexpr core::Duration kLongestSleep = std::chrono::seconds(1);

/// One channel and the thread that serves it.
class CpuWorker final : progress::Pollable, progress::EventHandler {
 public:
  CpuWorker(const BackendChannel& channel, core::Duration spin)
      : channel_(channel),
        engine_(spin),
        batch_(std::clamp(kBatchBytes / channel.channel.layout.max_length, 1U, kBatch)) {
    engine_.attach(*this);
    engine_.watch(channel_.waiter.fd(), EPOLLIN | EPOLLET, *this);
  }
  ~CpuWorker() { stop(); }
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  template <class Service>
  void start(Service service) {
    const kernels::ChannelHeader& header = channel_.channel.header();
    // Relaxed: the control channel orders it after the server's last word.
    const auto consumed = __atomic_load_n(&header.consumed, __ATOMIC_RELAXED);
    sequence_ = kernels::take_over(channel_.channel, consumed, service, staging_);
    channel_.ringer.ring();
    serve_batch_ = [](CpuWorker& self) { return self.serve_batch(Service{}); };
    thread_ = std::thread([this] { run(); });
  }

  void stop() {
    stop_.store(true, std::memory_order_relaxed);  // notify wakes the thread and orders it
    engine_.notify();
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] std::uint64_t heartbeat() const { return turns_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool take_fault(Fault& fault) {
    // Acquire: pairs with the release in report; the fields were written before.
    if (!has_fault_.load(std::memory_order_acquire)) return false;
    fault = fault_;
    has_fault_.store(false, std::memory_order_release);
    return true;
  }

 private:
  void run() {
    core::name_this_thread(("worker-" + std::to_string(channel_.index)).c_str());
    while (!stop_.load(std::memory_order_relaxed)) {
      engine_.run_once(core::Clock::now() + kLongestSleep);
      // Relaxed, one writer: a counter for the watchdog.
      turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }

  bool poll() override { return serve_batch_(*this); }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::from_thread;
  }
  core::Duration arm() override {
    channel_.waiter.arm();
    return core::Duration::max();
  }
  void disarm() override { channel_.waiter.disarm(); }
  void on_events(std::uint32_t) override {}  // the wake-up itself is all there is to it

  template <class Service>
  bool serve_batch(Service service) {
    std::uint32_t served = 0;
    for (; served < batch_; ++served) {
      const auto outcome =
          kernels::serve(kernels::SingleLane{}, channel_.channel, sequence_, service, staging_);
      if (outcome == kernels::Outcome::nothing) break;
      if (outcome == kernels::Outcome::refused) report();
      ++sequence_;
    }
    if (served != 0) channel_.ringer.ring();
    return served != 0;
  }

  void report() {
    if (has_fault_.load(std::memory_order_acquire)) return;  // the last one is not read yet
    fault_ = {channel_.index, channel_.channel.layout.slot_of(sequence_),
              kernels::load_vector(channel_.channel.request(sequence_).vectors).data[0]};
    has_fault_.store(true, std::memory_order_release);  // pairs with take_fault
  }

  BackendChannel channel_;
  progress::Engine engine_;
  std::uint32_t batch_;
  std::uint64_t sequence_ = 0;
  kernels::Staging staging_{};
  bool (*serve_batch_)(CpuWorker&) = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> turns_{0};
  Fault fault_{};
  std::atomic<bool> has_fault_{false};
  std::thread thread_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(core::Duration spin) : spin_(spin) {}

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] bool rings() const override { return true; }

  void start(std::vector<BackendChannel> channels, const std::string& service) override {
    for (const BackendChannel& channel : channels) {
      if (!channel.region->started()) channel.region->start();
      workers_.push_back(std::make_unique<CpuWorker>(channel, spin_));
    }
    const bool known = kernels::with_service(service, [&](auto chosen) {
      for (auto& worker : workers_) worker->start(chosen);
    });
    if (!known) throw core::Error(core::ErrorCode::not_found, "no service '" + service + "'");
  }

  bool stop(core::Duration) override {
    // A thread's turn is bounded, and so is this.
    workers_.clear();
    return true;
  }

  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override {
    std::vector<std::uint64_t> beats;
    for (const auto& worker : workers_) beats.push_back(worker->heartbeat());
    return beats;
  }

  std::vector<Fault> check() override {
    std::vector<Fault> faults;
    for (auto& worker : workers_) {
      if (Fault fault{}; worker->take_fault(fault)) faults.push_back(fault);
    }
    return faults;
  }

 private:
  core::Duration spin_;
  std::vector<std::unique_ptr<CpuWorker>> workers_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(core::Duration spin) {
  return std::make_unique<CpuBackend>(spin);
}

}  // namespace offload::gpu
