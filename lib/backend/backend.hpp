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

/// A request that the worker loop refused; the server should never have accepted it.
struct Fault {
  std::uint32_t channel;
  std::uint32_t slot;
  std::uint32_t length;  ///< what its header claimed, bytes
};

/// A back end, which processes the requests on a GPU or CPU threads: call start(); it then runs on
/// its own until stop(). All calls from one thread.
class Backend {
 public:
  Backend& operator=(Backend&&) = delete;
  /// Stops, within a time limit, if stop() was not called.
  virtual ~Backend() = default;

  /// Returns "cpu", "graph gpu:0 ...", "cuda gpu:0 NVIDIA H100 80GB HBM3 at 0000:01:00.0".
  [[nodiscard]] virtual std::string name() const = 0;

  /// Returns how a requester learns of its responses: doorbell or polling.
  [[nodiscard]] virtual channel::Wakeup wakeup() const = 0;

  /// Returns whether it serves channels that have a writer (ImportedChannel::writer()).
  [[nodiscard]] virtual bool posts_responses() const { return false; }

  /// Sets where the channels of the next start() count their times, in their order; further
  /// channels count theirs without a reader. The counters may have been used before.
  void count_in(std::vector<SharedChannelTimes> times) { times_ = std::move(times); }

  /// A channel, and the service that answers its requests.
  struct ServedChannel {
    channel::SharedChannel channel;
    std::string service;  ///< one of those that it was made with
  };

  /// Serves `channels` until stop(). Registers and starts their regions, unless they are started.
  /// Throws Error.
  virtual void start(std::vector<ServedChannel> channels) = 0;
  /// Serves `channels` of one service until stop(), in the same way.
  void start(std::vector<channel::SharedChannel> channels, const std::string& service) {
    std::vector<ServedChannel> served;
    for (auto& channel : channels) served.push_back({std::move(channel), service});
    start(std::move(served));
  }

  /// Stops serving. Returns false if it did not stop within `limit`: then the channels stay in use
  /// until the process ends.
  virtual bool stop(core::Duration limit) = 0;

  /// Returns a counter for each channel, which changes while the channel is served.
  [[nodiscard]] virtual std::vector<std::uint64_t> heartbeats() const = 0;

  /// Returns the latest fault of each channel since the last call. Throws Error (driver) if serving
  /// has ended without stop().
  virtual std::vector<Fault> check() = 0;

 protected:
  /// Returns the times of the channel at `position` among those of start().
  [[nodiscard]] SharedChannelTimes times_of(std::size_t position) const {
    return position < times_.size() ? times_[position] : std::make_shared<ChannelTimes>();
  }

 private:
  std::vector<SharedChannelTimes> times_;
};

/// Makes the CPU back end: the worker loop on threads, one for each channel. A thread spins for
/// `spin` after the last request, then sleeps until the server rings. Like the other back ends, it
/// makes objects of all `services`. Throws Error.
std::unique_ptr<Backend> make_cpu_backend(core::Duration spin,
                                          const Services& services = Services{});

struct CudaOptions {
  /// As measured (docs/evidence/benchmarks.md): for messages that fit in packets, more warps answer
  /// more; longer messages use a block of threads each, and more blocks slow each other down.
  static constexpr std::uint32_t kWarpsForShort = 32;
  static constexpr std::uint32_t kWarpsForLong = 16;

  std::string pci_address;  ///< "0000:01:00.0", or as for device::find; empty: first
  /// The number of messages of a channel that are processed at a time. Unset: chosen by the longest
  /// message of any channel.
  std::optional<std::uint32_t> warps_per_channel;
  core::Duration idle_sleep;  ///< between polls of an idle channel; 0: never sleep
};

/// Makes the CUDA back end: the persistent kernel. Throws Error: not_supported if the build has no
/// CUDA, not_found if the machine has no such GPU.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options,
                                           const Services& services = Services{});

/// Returns the architecture of a GPU as nvcc names it, "90" for compute capability 9.0.
/// `pci_address`: as in CudaOptions. Throws as make_cuda_backend() does.
std::string gpu_architecture(const std::string& pci_address);

struct GraphOptions {
  std::string pci_address;    ///< as CudaOptions's
  core::Duration spin;        ///< as make_cpu_backend's
  std::uint32_t batches = 2;  ///< of a channel, in flight: one is filled while one is on the GPU
};

/// Makes the graph back end, the baseline without a persistent kernel: a thread for each channel
/// gathers requests; a CUDA graph for each batch copies them to the GPU, answers them and copies
/// the answers back. Throws as make_cuda_backend() does.
std::unique_ptr<Backend> make_graph_backend(const GraphOptions& options,
                                            const Services& services = Services{});

}  // namespace offload::backend
