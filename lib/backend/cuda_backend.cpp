#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "backend/backend.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/cuda_ranges.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"
#include "gpu/nvtx_range.hpp"
#include "gpu/register_pages.hpp"
#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"

namespace offload::backend {
namespace {

using core::Error;
using core::ErrorCode;

/// The number of empty polls of a group before it sleeps, if the channel had no message meanwhile:
/// some 12 ms, because a poll is one PCIe round trip.
constexpr std::uint32_t kPollsUntilIdle = 8192;
/// The time for which the destructor waits for the kernel to end.
constexpr core::Duration kStopTime = std::chrono::seconds(2);

/// Returns the GPU's address of `region`, and registers it with the GPU if it is not yet.
std::uint8_t* map(memory::MemoryRegion& region) {
  static gpu::CudaRegistrar registrar;  // outlives every region
  if (!region.started()) {
    region.add_registrar(registrar);
    region.start();
  }
  const memory::MemoryKey* const key = region.key(registrar, 0);
  if (key == nullptr) {
    throw Error(ErrorCode::bad_state, "region '" + region.name() + "' was started without the GPU");
  }
  return static_cast<std::uint8_t*>(key->handle);
}

/// The state from start to stop. Members are destroyed in reverse order: the streams first.
struct RunState {
  /// `count` channels and `services` services, each of which has a separate kernel.
  RunState(std::size_t count, std::uint32_t groups_per_channel, std::size_t services)
      : device_channels(count),
        heartbeats(count),
        faults(count),
        gates(count),
        latest(count),
        stop(1),
        one(1),
        groups(groups_per_channel),
        busy(count * groups_per_channel),
        busy_counted(count * groups_per_channel),
        writers(count),
        kernels(services) {}

  std::vector<channel::SharedChannel> channels;  ///< with their regions, which the GPU uses
  gpu::DeviceArray<kernels::DeviceChannel> device_channels;
  gpu::PinnedArray<std::uint64_t> heartbeats;
  gpu::PinnedArray<kernels::Packet> faults;
  gpu::DeviceArray<std::uint64_t> gates;
  gpu::DeviceArray<std::uint32_t> latest;
  gpu::DeviceArray<std::uint32_t> stop;
  gpu::PinnedArray<std::uint32_t> one;
  std::size_t groups;                       ///< of a channel
  gpu::PinnedArray<std::uint32_t> busy;     ///< by channel and group, written by the kernel
  std::vector<std::uint32_t> busy_counted;  ///< of that
  /// By channel, if responses are posted: the state that their groups share in GPU memory, because
  /// there are no atomics across PCIe, and the memory of the queues, which the GPU uses.
  gpu::DeviceArray<kernels::rdma::SlotWriter> writers;
  std::vector<gpu::DeviceArray<kernels::rdma::SharedSendState>> send_states;
  std::vector<gpu::DeviceArray<std::uint64_t>> send_marks;
  std::vector<std::shared_ptr<memory::MemoryRegion>> send_queues;
  gpu::RegisterPages registers;           ///< of cards whose doorbells the GPU rings
  std::vector<SharedChannelTimes> times;  ///< by channel
  core::TimePoint counted = core::Clock::now();
  std::vector<std::uint64_t> faults_seen;  ///< message + 1, by channel; 0: none
  gpu::CudaStream control;
  std::vector<gpu::CudaStream> kernels;  ///< by service
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const CudaOptions& options, const Services& services)
      : options_(options),
        device_(gpu::open_gpu(options.pci_address)),
        services_(services, static_cast<std::int32_t>(device_.index)) {}

  ~CudaBackend() override {
    if (run_ && !stop(kStopTime)) {
      core::log_error("the GPU did not stop; its memory is not freed until the process exits");
    }
  }

  [[nodiscard]] std::string name() const override { return "cuda " + device_.describe(); }
  [[nodiscard]] channel::Wakeup wakeup() const override { return channel::Wakeup::polling; }
  [[nodiscard]] bool posts_responses() const override { return true; }

  void start(std::vector<ServedChannel> channels) override {
    if (left_running_) core::throw_bad_state("CUDA back end", "still serving", "start");
    const gpu::NvtxRange range("offload: start the persistent kernel");
    // All are made before the first kernel runs, because their kernels are loaded with them.
    std::map<const ServiceObject*, std::vector<std::size_t>> channels_of;
    std::uint32_t longest = 0;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const kernels::ChannelLayout& layout = channels[i].channel->view().layout;
      channels_of[&services_.find(channels[i].service, layout)].push_back(i);
      longest = std::max(longest, layout.max_length);
    }
    const std::uint32_t groups = options_.warps_per_channel.value_or(
        longest <= kernels::kMaxPacketPayload ? CudaOptions::kWarpsForShort
                                              : CudaOptions::kWarpsForLong);
    auto run = std::make_unique<RunState>(channels.size(), groups, channels_of.size());
    for (auto& served : channels) run->channels.push_back(std::move(served.channel));
    for (std::size_t i = 0; i < run->channels.size(); ++i) run->times.push_back(times_of(i));
    run->faults_seen.assign(run->channels.size(), 0);
    std::vector<kernels::DeviceChannel> device_channels;  // those of a service side by side
    for (const auto& [service, own] : channels_of) {
      for (const std::size_t i : own) device_channels.push_back(make_device_channel(*run, i));
    }
    gpu::check_cuda(
        cudaMemcpy(run->device_channels.get(), device_channels.data(),
                   device_channels.size() * sizeof(kernels::DeviceChannel), cudaMemcpyHostToDevice),
        "cudaMemcpy of the channels");
    *run->one.get() = 1;
    // The streams of the kernels are non-blocking: they do not wait for the copies and fills above.
    gpu::CudaStreamRef(cudaStreamLegacy).sync();

    kernels::PersistentWorker worker{};
    worker.channels = run->device_channels.get();
    worker.max_length = longest;
    worker.groups_per_channel = groups;
    worker.posts = posts(run->channels);
    worker.stop = run->stop.get();
    worker.polls_until_idle = kPollsUntilIdle;
    worker.idle_sleep_ns = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(options_.idle_sleep).count());
    run_ = std::move(run);
    double taken = 0;  // of the GPU
    auto stream = run_->kernels.begin();
    for (const auto& [service, own] : channels_of) {
      worker.channel_count = static_cast<std::uint32_t>(own.size());
      const auto status = static_cast<cudaError_t>(
          service->interface().launch(service->get(), &worker, &taken, (stream++)->get()));
      if (status != cudaSuccess) stop(kStopTime);  // stops the kernels before it
      gpu::check_cuda(status, "cannot launch the persistent kernel of service " +
                                  std::string(service->interface().name));
      worker.channels += own.size();
    }
  }

  bool stop(core::Duration limit) override {
    if (!run_) return !left_running_;
    const gpu::NvtxRange range("offload: stop the persistent kernel");
    const auto deadline = core::Clock::now() + limit;
    gpu::log_cuda(cudaMemcpyAsync(run_->stop.get(), run_->one.get(), sizeof(std::uint32_t),
                                  cudaMemcpyHostToDevice, run_->control.get()),
                  "cudaMemcpyAsync of the stop word");
    while (std::ranges::any_of(run_->kernels, [](const gpu::CudaStream& stream) {
      return stream.query() == cudaErrorNotReady;
    })) {
      if (core::Clock::now() > deadline) {
        // Freeing would wait for the kernel forever.
        [[maybe_unused]] const RunState* left_behind = run_.release();
        services_.leave_behind();
        left_running_ = true;
        return false;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    count(*run_);
    run_.reset();
    return true;
  }

  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override {
    std::vector<std::uint64_t> beats;
    if (!run_) return beats;
    for (std::size_t i = 0; i < run_->channels.size(); ++i) {
      // Relaxed: pairs with the kernel's store_relaxed_sys; a counter, compared for change only.
      beats.push_back(__atomic_load_n(run_->heartbeats.get() + i, __ATOMIC_RELAXED));
    }
    return beats;
  }

  std::vector<Fault> check() override {
    std::vector<Fault> faults;
    if (!run_) return faults;
    count(*run_);
    for (std::size_t i = 0; i < run_->channels.size(); ++i) {
      const kernels::Packet fault = kernels::load_packet(run_->faults.get() + i);
      // A message is refused once, so its number distinguishes a new report from the last.
      const std::uint64_t message = fault.flag == 0 ? 0 : fault.data[2] + std::uint64_t{1};
      if (message == run_->faults_seen[i]) continue;
      run_->faults_seen[i] = message;
      faults.push_back({run_->channels[i]->index(), fault.data[0], fault.data[1]});
    }
    for (const gpu::CudaStream& kernel : run_->kernels) {
      if (const auto status = kernel.query(); status != cudaErrorNotReady) {
        throw Error(ErrorCode::driver,
                    std::string("the persistent kernel has ended: ") + cudaGetErrorString(status),
                    gpu::cuda_cause(status));
      }
    }
    return faults;
  }

 private:
  /// Adds the times of the kernel's groups since the last call to those of the channels. Must be
  /// called again within 4 s: the groups count nanoseconds modulo 2^32.
  static void count(RunState& run) {
    const auto now = core::Clock::now();
    const auto elapsed =
        static_cast<std::uint64_t>((now - std::exchange(run.counted, now)).count());
    for (std::size_t i = 0; i < run.channels.size(); ++i) {
      std::uint64_t busy = 0;
      for (std::size_t group = i * run.groups; group < (i + 1) * run.groups; ++group) {
        // Relaxed: pairs with the kernel's store_relaxed_sys; a counter.
        const std::uint32_t told = __atomic_load_n(run.busy.get() + group, __ATOMIC_RELAXED);
        // Never decreases: time that a group reports late was counted as polling before.
        busy += told - std::exchange(run.busy_counted[group], told);
      }
      progress::EngineTimes& times = run.times[i]->turns;
      times.busy.add(busy);
      times.polling.add(elapsed * run.groups - std::min(busy, elapsed * run.groups));
    }
  }

  /// Returns whether the channels have writers: all or none do, because they belong to one server.
  static bool posts(const std::vector<channel::SharedChannel>& channels) {
    const auto with = std::ranges::count_if(
        channels, [](const auto& channel) { return channel->writer() != nullptr; });
    if (with != 0 && static_cast<std::size_t>(with) != channels.size()) {
      core::throw_bad_state("CUDA back end", "given channels with and without writers", "start");
    }
    return with != 0;
  }

  /// Returns the writer of the channel at `i` for the GPU.
  static kernels::rdma::SlotWriter* make_device_writer(RunState& run, std::size_t i) {
    const channel::ResponseWriter& writer = *run.channels[i]->writer();
    run.send_queues.push_back(writer.queue);
    auto& state = run.send_states.emplace_back(1);
    auto& marks = run.send_marks.emplace_back(writer.slots.queue.queue.ring.blocks);
    kernels::rdma::SlotWriter device = writer.slots;
    void* const seen_at = map(*writer.queue);
    device.queue = {kernels::rdma::as_seen_at(writer.slots.queue.queue,
                                              writer.queue->ranges().front().address, seen_at),
                    state.get(), marks.get()};
    if (writer.card_register != nullptr) ring_card(run, i, device.queue.queue);
    device.limit.stop = run.stop.get();
    kernels::rdma::SlotWriter* const place = run.writers.get() + i;
    gpu::check_cuda(cudaMemcpy(place, &device, sizeof device, cudaMemcpyHostToDevice),
                    "cudaMemcpy of a channel's writer");
    return place;
  }

  /// Makes the kernel ring the card's doorbell for the channel at `i`, if CUDA can map its page.
  static void ring_card(RunState& run, std::size_t i, kernels::rdma::SendQueue& queue) {
    const std::uint32_t channel = run.channels[i]->index();
    try {
      void* const seen_at = run.registers.seen_at(run.channels[i]->writer()->card_register);
      queue.doorbell = static_cast<std::uint64_t*>(seen_at);
      core::log_info("channel {}: the GPU rings the card's doorbell", channel);
    } catch (const Error& error) {
      core::log_info("channel {}: a thread rings the card's doorbell, as {}", channel,
                     error.what());
    }
  }

  static kernels::DeviceChannel make_device_channel(RunState& run, std::size_t i) {
    const channel::SharedChannel& channel = run.channels[i];
    kernels::DeviceChannel device{};
    device.channel = channel->view();
    device.channel.requests = map(channel->requests());
    device.channel.responses = map(channel->responses());
    device.heartbeat = run.heartbeats.get() + i;
    device.fault = run.faults.get() + i;
    device.first_sequence = channel->first_sequence();
    device.latest = run.latest.get() + i;
    device.gate = run.gates.get() + i;
    device.busy = run.busy.get() + i * run.groups;
    if (channel->writer() != nullptr) device.writer = make_device_writer(run, i);
    gpu::check_cuda(cudaMemcpy(device.gate, &device.first_sequence, sizeof *device.gate,
                               cudaMemcpyHostToDevice),
                    "cudaMemcpy of a channel's first message");
    return device;
  }

  CudaOptions options_;
  device::Device device_;
  ServiceObjects services_;
  std::unique_ptr<RunState> run_;  ///< ends before it
  bool left_running_ = false;      ///< a kernel that did not stop
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, const Services& services) {
  return std::make_unique<CudaBackend>(options, services);
}

std::string gpu_architecture(const std::string& pci_address) {
  const auto device = static_cast<int>(gpu::open_gpu(pci_address).index);
  int major = 0;
  int minor = 0;
  gpu::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
  gpu::check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                  "cudaDeviceGetAttribute");
  return std::to_string(10 * major + minor);
}

}  // namespace offload::backend
