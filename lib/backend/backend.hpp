#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/channel_times.hpp"
#include "backend/services.hpp"
#include "channel/channel_memory.hpp"
#include "core/clock.hpp"

namespace offload::backend {

/// A request that the worker loop refused; the server should never have let it through.
struct Fault {
  std::uint32_t channel;
  std::uint32_t slot;
  std::uint32_t length;  ///< what its header claimed, bytes
};

/// A back end: what answers the requests, a GPU or CPU threads. start, then it serves by itself,
/// then stop. All calls from one thread.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  /// Stops, with a bound, if stop was not called.
  virtual ~Backend() = default;

  /// "cpu", "graph gpu:0 ...", "cuda gpu:0 NVIDIA H100 80GB HBM3 at 0000:01:00.0"
  [[nodiscard]] virtual std::string name() const = 0;

  /// How a requester learns of its responses: doorbell or polling.
  [[nodiscard]] virtual channel::Wakeup wakeup() const = 0;

  /// Whether it serves channels that have a writer (ImportedChannel::writer()).
  [[nodiscard]] virtual bool posts_responses() const { return false; }

  /// Before start(): the channels that it will be given count their times there, by their order,
  /// and beyond these nowhere that anybody sees. They may have counted for others before.
  void count_in(std::vector<SharedChannelTimes> times) { times_ = std::move(times); }

  /// A channel, and the service that answers its requests.
  struct ServedChannel {
    channel::SharedChannel channel;
    std::string service;  ///< one that it was made with
  };

  /// Serves `channels` until stop(). Registers and starts their regions, unless they are started.
  /// Throws Error.
  virtual void start(std::vector<ServedChannel> channels) = 0;
  /// The same for channels of one service.
  void start(std::vector<channel::SharedChannel> channels, const std::string& service) {
    std::vector<ServedChannel> served;
    for (auto& channel : channels) served.push_back({std::move(channel), service});
    start(std::move(served));
  }

  /// Ends serving. Returns false if it did not end within `limit`: then the channels stay in use
  /// until the process ends.
  virtual bool stop(core::Duration limit) = 0;

  /// A counter for each channel that moves while the channel is served.
  [[nodiscard]] virtual std::vector<std::uint64_t> heartbeats() const = 0;

  /// The latest fault of each channel since the last call. Throws Error (driver) if serving has
  /// ended by itself.
  virtual std::vector<Fault> check() = 0;

 protected:
  /// Of the channel at `position` among those of start().
  [[nodiscard]] SharedChannelTimes times_of(std::size_t position) const {
    return position < times_.size() ? times_[position] : std::make_shared<ChannelTimes>();
  }

 private:
  std::vector<SharedChannelTimes> times_;
};

/// The CPU back end: the worker loop on threads, one a channel. A thread spins for `spin` after the
/// last request, then sleeps until the server rings.
/// It makes objects of all `services`, as the other back ends do. Throws Error.
std::unique_ptr<Backend> make_cpu_backend(core::Duration spin,
                                          const Services& services = Services{});

struct CudaOptions {
  /// As measured (docs/evidence/benchmarks.md): more warps answer more messages that fit in
  /// packets; for longer ones each is a block of threads, and more of these slow each other down.
  static constexpr std::uint32_t kWarpsForShort = 32;
  static constexpr std::uint32_t kWarpsForLong = 16;

  std::string pci_address;  ///< "0000:01:00.0", or as device::find takes it; empty: first
  /// Messages of a channel that are worked on at once. Unset: chosen by the longest message that
  /// any channel takes.
  std::optional<std::uint32_t> warps_per_channel;
  core::Duration idle_sleep;  ///< between polls of an idle channel; 0: never sleep
};

/// The CUDA back end: the persistent kernel. Throws Error: not_supported where the build has no
/// CUDA, not_found where the machine has no such GPU.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options,
                                           const Services& services = Services{});

/// The architecture of a GPU as nvcc has it, "90" for compute capability 9.0. `pci_address`: as
/// CudaOptions's. Throws as make_cuda_backend.
std::string gpu_architecture(const std::string& pci_address);

struct GraphOptions {
  std::string pci_address;  ///< as CudaOptions's
  core::Duration spin;      ///< as make_cpu_backend's
  std::uint32_t batches =
      2;  ///< of a channel, under way at once: one is filled beside one on the GPU
};

/// The graph back end, the baseline without a persistent kernel: a thread a channel gathers
/// requests; a CUDA graph a batch copies them to the GPU, answers them and copies the answers back.
/// Throws as make_cuda_backend.
std::unique_ptr<Backend> make_graph_backend(const GraphOptions& options,
                                            const Services& services = Services{});

}  // namespace offload::backend
