#include <memory>

#include "backend/backend.hpp"
#include "backend/batch_worker.hpp"
#include "backend/graph_processor.hpp"
#include "gpu/cuda_device.hpp"

namespace offload::backend {
namespace {

using core::Error;
using core::ErrorCode;

/// The time for which the destructor waits for the batches in flight.
constexpr core::Duration kGraphStopTime = std::chrono::seconds(2);

class GraphBackend final : public Backend {
 public:
  GraphBackend(const GraphOptions& options, const Services& services)
      : options_(options),
        device_(gpu::open_gpu(options.pci_address)),
        services_(services, static_cast<std::int32_t>(device_.index)) {}

  ~GraphBackend() override {
    if (!stop(kGraphStopTime)) {
      services_.leave_behind();
      core::log_error("the GPU did not stop; its memory is not freed until the process exits");
    }
  }

  [[nodiscard]] std::string name() const override { return "graph " + device_.describe(); }
  [[nodiscard]] channel::Wakeup wakeup() const override { return channel::Wakeup::doorbell; }

  void start(std::vector<ServedChannel> channels) override {
    if (left_running_) core::throw_bad_state("CUDA graph back end", "still serving", "start");
    for (const auto& [channel, service] : channels) {
      channel::start_regions(*channel);
      // In a batch on the GPU a message has only this room, whatever the server allows.
      auto layout = channel->view().layout;
      layout.max_response = kernels::kLeastRoom;
      workers_.push_back(std::make_unique<BatchWorker>(
          channel, options_.spin,
          std::make_unique<GraphProcessor>(static_cast<int>(device_.index),
                                           services_.find(service, layout), layout.max_request,
                                           options_.batches),
          times_of(workers_.size())));
    }
    for (auto& worker : workers_) worker->start();
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
        throw Error(ErrorCode::driver, "the GPU no longer serves requests: " + failure);
      }
    }
    return faults;
  }

 private:
  GraphOptions options_;
  device::Device device_;
  ServiceObjects services_;
  std::vector<std::unique_ptr<BatchWorker>> workers_;
  bool left_running_ = false;  ///< a batch that did not end
};

}  // namespace

std::unique_ptr<Backend> make_graph_backend(const GraphOptions& options, const Services& services) {
  return std::make_unique<GraphBackend>(options, services);
}

}  // namespace offload::backend
