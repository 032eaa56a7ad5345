#include <cstdlib>
#include <memory>

#include "backend/backend.hpp"
#include "backend/batch_worker.hpp"
#include "backend/graph_processor.hpp"
#include "gpu/cuda_device.hpp"
#include "kernels/services.hpp"

namespace offload::backend {
namespace {

using core::Error;
using core::ErrorCode;

/// How long the destructor waits for the batches under way to end.
constexpr core::Duration kGraphStopTime = std::chrono::seconds(2);

class GraphBackend final : public Backend {
 public:
  explicit GraphBackend(const GraphOptions& options)
      : options_(options), device_(gpu::open_gpu(options.pci_address)) {}

  ~GraphBackend() override {
    if (!stop(kGraphStopTime)) {
      core::log_error("the GPU did not stop; its memory is left to the end of the process");
    }
  }

  [[nodiscard]] std::string name() const override { return "graph " + device_.describe(); }
  [[nodiscard]] channel::Wakeup wakeup() const override { return channel::Wakeup::doorbell; }

  void start(std::vector<channel::SharedChannel> channels, const std::string& service) override {
    if (left_running_) core::throw_bad_state("CUDA graph back end", "still serving", "start");
    const bool known = kernels::with_service(service, [&](auto) {
      for (const channel::SharedChannel& channel : channels) {
        channel::start_regions(*channel);
        workers_.push_back(std::make_unique<BatchWorker>(
            channel, options_.spin,
            std::make_unique<GraphProcessor>(static_cast<int>(device_.index), service,
                                             channel->view().layout.max_length, options_.batches),
            times_of(workers_.size())));
      }
      for (auto& worker : workers_) worker->start();
    });
    if (!known) throw Error(ErrorCode::not_found, "no service '" + service + "'");
  }

  bool stop(core::Duration limit) override {
    const auto deadline = core::Clock::now() + limit;
    for (auto& worker : workers_) worker->stop();
    for (auto& worker : workers_) {
      if (worker->drain(deadline)) continue;
      // Freeing would wait for the GPU forever.
      [[maybe_unused]] const BatchWorker* left_behind = worker.release();
      left_running_ = true;
    }
    workers_.clear();
    return !left_running_;
  }

  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override {
    return heartbeats_of(workers_);
  }

  std::vector<Fault> check() override {
    auto faults = take_faults_of(workers_);
    for (const auto& worker : workers_) {
      if (const std::string failure = worker->failure(); !failure.empty()) {
        throw Error(ErrorCode::driver, "the GPU serves no longer: " + failure);
      }
    }
    return faults;
  }

 private:
  GraphOptions options_;
  device::Device device_;
  std::vector<std::unique_ptr<BatchWorker>> workers_;
  bool left_running_ = false;  ///< a batch that did not end
};

}  // namespace

std::unique_ptr<Backend> make_graph_backend(const GraphOptions& options) {
  // Before the first CUDA call: the most connections to the GPU there can be. Streams that share
  // one wait for each other, and each channel has several streams. Once, as in gpu::open_gpu().
  [[maybe_unused]] static const int set = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return std::make_unique<GraphBackend>(options);
}

}  // namespace offload::backend
