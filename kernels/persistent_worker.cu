#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"

namespace offload::kernels {
namespace {

/// Polls of an idle or a busy group between two heartbeats.
constexpr std::uint32_t kPollsPerHeartbeat = 1024;

/// Not hoisted out of a loop, and not cached in L1.
__device__ std::uint32_t load_word(const std::uint32_t* from) {
  return *static_cast<const volatile std::uint32_t*>(from);
}

/// Threads of a block that works on one message: with 512, what FlatResponse has under way at once
/// is 64 KiB. Fewer where a GPU has not room for so many.
constexpr std::uint32_t kMostThreads = 512;
constexpr std::uint32_t kFewestThreads = 64;

/// What one warp receives of a channel: every groups_per_channel-th message. Consecutive messages
/// are in the hands of different warps, and each knows the one slot to look at.
class WarpPoller {
 public:
  __device__ WarpPoller(const PersistentWorker& worker, std::uint32_t group)
      : worker_(worker),
        own_(worker.channels[group / worker.groups_per_channel]),
        rank_(group % worker.groups_per_channel),
        sequence_(own_.first_sequence + rank_) {}

  [[nodiscard]] __device__ std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] __device__ const ChannelView& channel() const { return own_.channel; }

  /// Waits for its next message. `may_look`: whether to look for it yet. False: the worker is to
  /// end.
  template <class MayLook>
  __device__ bool wait(Staging& staging, Received& received, const MayLook& may_look) {
    bool looked = false;
    for (std::uint32_t quiet_polls = 0;; ++polls_) {
      // Asked for before the poll and looked at after it, so that both are under way together.
      const std::uint32_t stop = load_word(worker_.stop);
      const bool looks = may_look();
      received = {Arrival::none, 0};
      if (looks) received = receive(Warp{}, own_.channel, sequence_, staging);
      beat();
      // One lane's word for all: they leave together.
      if (Warp::from_first(stop) != 0) return false;
      if (received.arrival != Arrival::none) break;
      // Who waited for long may look now: at full speed at first.
      if (looks && !looked) quiet_polls = 0;
      looked = looks;
      if (++quiet_polls >= worker_.polls_until_idle) {
        if (!channel_moved() && worker_.idle_sleep_ns != 0) sleep(looks, may_look);
        quiet_polls = 0;
      }
    }
    ++polls_;
    return true;
  }

  /// Answers the message that it waited for, and goes on to its next.
  template <class Service>
  __device__ void answer(const Service& service, Staging& staging, Received received) {
    respond(Warp{}, own_.channel, sequence_, service, staging, received);
    if (received.arrival == Arrival::too_long && Warp::lane() == 0) {
      const std::uint32_t slot = own_.channel.layout.slot_index(sequence_);
      store_packet(own_.fault, {{slot, received.length, static_cast<std::uint32_t>(sequence_)}, 1});
    }
    next();
  }

  /// Goes on to its next message: another answers this one.
  __device__ void next() {
    // Relaxed: it orders nothing.
    if (Warp::lane() == 0) {
      *static_cast<volatile std::uint32_t*>(own_.latest) = static_cast<std::uint32_t>(sequence_);
    }
    sequence_ += worker_.groups_per_channel;
  }

 private:
  __device__ void beat() const {
    if (rank_ != 0 || polls_ % kPollsPerHeartbeat != 0 || Warp::lane() != 0) return;
    *static_cast<volatile std::uint64_t*>(own_.heartbeat) = polls_ / kPollsPerHeartbeat + 1ULL;
  }

  /// Whether any message of the channel was found since this was asked before. A group's own are
  /// too few to tell a quiet channel by.
  __device__ bool channel_moved() {
    const std::uint32_t latest = load_word(own_.latest);
    const bool moved = Warp::from_first(latest != latest_) != 0;
    latest_ = latest;
    return moved;
  }

  /// Until messages come to the channel, or its next has begun to, or it may look for that and
  /// might not before (then it has not `looked`), or the worker is to end. Asks for the header
  /// alone, where a look at all that a message may have is up to 512 bytes over PCIe.
  template <class MayLook>
  __device__ void sleep(bool looked, const MayLook& may_look) {
    for (;;) {
      __nanosleep(worker_.idle_sleep_ns);
      const std::uint32_t stop = load_word(worker_.stop);
      const bool looks = may_look();
      if (looks && (!looked || has_header(Warp{}, own_.channel, sequence_))) return;
      if (channel_moved() || Warp::from_first(stop) != 0) return;
      looked = looks;
      ++polls_;
      beat();
    }
  }

  const PersistentWorker& worker_;
  DeviceChannel own_;
  std::uint32_t rank_;
  std::uint64_t sequence_;
  std::uint32_t latest_ = 0;  ///< as last seen, in the first lane
  std::uint32_t polls_ = 0;
};

/// Which of a channel's messages may be looked for. A fence, which a long answer takes, waits for
/// every read under way on the PCIe, and reads of a long request do, too: polls of idle warps make
/// both longer (docs/performance.md). So while long messages come one by one, one warp looks for
/// the next, from when the one before is written on. Once there are others all warps look: after a
/// short message, or where a message was there at the first look.
class Gate {
 public:
  __device__ Gate(const PersistentWorker& worker, std::uint32_t group)
      : last_(worker.channels[group / worker.groups_per_channel].gate),
        groups_(worker.groups_per_channel) {}

  /// Whether message `sequence` may be looked for. For a warp, with the same argument.
  __device__ bool is_open(std::uint64_t sequence) {
    if (sequence > known_) known_ = *static_cast<volatile unsigned long long*>(last_);
    const bool open = Warp::from_first(sequence <= known_) != 0;
    if (open) ++looks_;
    return open;
  }

  /// Message `sequence` was found. Whether it opened for those behind it.
  __device__ bool found(std::uint64_t sequence, Received received) {
    const bool alone = looks_ > 1 && received.arrival == Arrival::plain;
    looks_ = 0;
    if (alone) return false;
    known_ = sequence + groups_;
    if (Warp::lane() == 0) atomicMax(last_, known_);
    return true;
  }

  /// Opens for the message behind `sequence`. For one thread.
  __device__ void open_next(std::uint64_t sequence) { atomicMax(last_, sequence + 1ULL); }

 private:
  /// The last that may be looked for. Relaxed: it orders nothing, and to see it late is no harm.
  unsigned long long* last_;
  std::uint32_t groups_;
  std::uint32_t looks_ = 0;  ///< for the next message
  unsigned long long known_ = 0;
};

/// Where no message is longer than a warp's packets.
template <class Service>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    serve_by_warps(const __grid_constant__ PersistentWorker worker) {
  __shared__ Staging staging_of[kWarpsPerBlock];
  const std::uint32_t in_block = threadIdx.x / 32;
  Staging& staging = staging_of[in_block];
  WarpPoller poller(worker, blockIdx.x * kWarpsPerBlock + in_block);
  const auto always = [] { return true; };
  for (Received received{}; poller.wait(staging, received, always);) {
    poller.answer(Service{}, staging, received);
  }
}

/// What the first warp of a block has for all of it.
struct Job {
  bool end;
  bool opens_gate;  ///< nobody looks for the next message before
  std::uint64_t sequence;
  Received received;
};

/// Answers short messages until a long one has come, or the end.
template <class Service>
__device__ Job next_job(WarpPoller& poller, Gate& gate, const Service& service, Staging& staging) {
  const auto may_look = [&] { return gate.is_open(poller.sequence()); };
  for (Received received{}; poller.wait(staging, received, may_look);) {
    const bool opened = gate.found(poller.sequence(), received);
    if (received.arrival == Arrival::plain) return {false, !opened, poller.sequence(), received};
    poller.answer(service, staging, received);
  }
  return {true, false, 0, {}};
}

/// Where one may be longer: a warp receives all and answers the short ones; a long one is answered
/// by the whole block.
template <class Service>
__global__ void __launch_bounds__(kMostThreads)
    serve_by_blocks(const __grid_constant__ PersistentWorker worker) {
  __shared__ Staging staging;
  __shared__ Job job;
  WarpPoller poller(worker, blockIdx.x);
  Gate gate(worker, blockIdx.x);
  for (;;) {
    if (threadIdx.x < 32) {
      const Job next = next_job(poller, gate, Service{}, staging);
      if (threadIdx.x == 0) job = next;
      poller.next();
    }
    ThreadBlock::sync();
    if (job.end) return;
    // By another warp than the one that fences: its fence would wait for this.
    const auto open_gate = [&] {
      if (job.opens_gate && threadIdx.x == 32) gate.open_next(job.sequence);
    };
    respond(ThreadBlock{}, poller.channel(), job.sequence, Service{}, staging, job.received,
            open_gate);
  }
}

using Kernel = void (*)(PersistentWorker);

/// Whether so many blocks of so many threads are on the GPU at once.
cudaError_t fits(Kernel kernel, std::uint32_t blocks, std::uint32_t threads, bool& fit) {
  int device = 0;
  int processors = 0;
  int per_processor = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const auto status =
          cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess) {
    return status;
  }
  const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel,
                                                                    static_cast<int>(threads), 0);
  fit =
      blocks <= static_cast<std::uint32_t>(processors) * static_cast<std::uint32_t>(per_processor);
  return status;
}

/// With as many threads a block as fit, from `most` down to `fewest`.
cudaError_t launch(Kernel kernel, const PersistentWorker& worker, std::uint32_t blocks,
                   std::uint32_t most, std::uint32_t fewest, cudaStream_t stream) {
  std::uint32_t threads = most;
  for (bool fit = false;; threads /= 2) {
    if (threads < fewest) return cudaErrorLaunchOutOfResources;
    const auto status = fits(kernel, blocks, threads, fit);
    if (status != cudaSuccess) return status;
    if (fit) break;
  }
  // Its status is this launch's alone; cudaGetLastError also returns what an earlier call left.
  void* arguments[] = {const_cast<PersistentWorker*>(&worker)};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, stream);
}

}  // namespace

cudaError_t launch_persistent_worker(std::string_view service, const PersistentWorker& worker,
                                     cudaStream_t stream) {
  if (worker.channel_count == 0 || worker.groups_per_channel == 0 ||
      worker.groups_per_channel % kWarpsPerBlock != 0) {
    return cudaErrorInvalidValue;
  }
  const std::uint32_t groups = worker.channel_count * worker.groups_per_channel;
  cudaError_t status = cudaErrorInvalidValue;
  with_service(service, [&](auto chosen) {
    using Service = decltype(chosen);
    if (worker.max_length <= kMaxPacketPayload) {
      constexpr std::uint32_t kThreads = kWarpsPerBlock * 32;  // each of the warps has its poller
      status = launch(serve_by_warps<Service>, worker, groups / kWarpsPerBlock, kThreads, kThreads,
                      stream);
    } else {
      status =
          launch(serve_by_blocks<Service>, worker, groups, kMostThreads, kFewestThreads, stream);
    }
  });
  return status;
}

}  // namespace offload::kernels
