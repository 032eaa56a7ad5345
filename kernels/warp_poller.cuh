#pragma once

#include "kernels/group.hpp"
#include "kernels/memory_order.hpp"
#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"

namespace offload::kernels {

/// Polls of an idle or a busy group between two heartbeats.
constexpr std::uint32_t kPollsPerHeartbeat = 1024;

/// Receives one warp's share of a channel: every groups_per_channel-th message. Consecutive
/// messages belong to different warps, and each warp knows the one slot to look at. All members are
/// called by every lane of the warp, with the same arguments. `kPosts`: PersistentWorker::posts.
template <bool kPosts>
class WarpPoller {
 public:
  __device__ WarpPoller(const PersistentWorker& worker, std::uint32_t group)
      : worker_(worker),
        own_(worker.channels[group / worker.groups_per_channel]),
        rank_(group % worker.groups_per_channel),
        sequence_(own_.first_sequence + rank_) {}

  [[nodiscard]] __device__ std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] __device__ const ChannelView& channel() const { return own_.channel; }

  /// Polls for its next message. `may_look()` returns whether that may have been posted yet.
  /// Returns false when the worker must end.
  template <class MayLook>
  __device__ bool wait(Staging& staging, Received& received, const MayLook& may_look) {
    bool looked = false;
    for (std::uint32_t quiet_polls = 0;; ++polls_) {
      // Loaded before the poll and used after it, so that both reads are under way together.
      const std::uint32_t stop = load_stop();
      const bool looks = may_look();
      received = {Arrival::none, 0, 0};
      if (looks) received = receive<kPosts>(Warp{}, own_.channel, sequence_, staging, polled_);
      beat();
      // Lane 0's value decides for all lanes: they leave together.
      if (Warp::from_first(stop) != 0) return false;
      if (received.arrival != Arrival::none) break;
      // After a long wait it may look now: at full speed at first.
      if (looks && !looked) quiet_polls = 0;
      looked = looks;
      if (++quiet_polls >= worker_.polls_until_idle) {
        if (!channel_moved() && worker_.idle_sleep_ns != 0) sleep(looks, may_look);
        quiet_polls = 0;
      }
    }
    ++polls_;
    expect_as(received);
    return true;
  }

  /// Starts the time in which the group answers a message; end_busy() ends it.
  __device__ void begin_busy() { busy_ -= nanoseconds(); }
  __device__ void end_busy() { busy_ += nanoseconds(); }

  /// Answers the message that wait() received, and goes on to its next.
  template <class Service>
  __device__ void answer(const Service& service, Staging& staging, Received received) {
    begin_busy();
    const Response response = respond(Warp{}, own_.channel, sequence_, service, staging, received);
    finish(sequence_, received, response);
    end_busy();
    next();
  }

  /// Completes a published response.
  __device__ void finish(std::uint64_t sequence, Received received,
                         const Response& response) const {
    if (response.outcome == Outcome::refused) report(sequence, received.length);
    if constexpr (kPosts) {
      // Ignored: posting fails only if the queue is in error, which its owner reports.
      static_cast<void>(
          rdma::write_response(Warp{}, *own_.writer, own_.channel, sequence, response.header));
    }
  }

  /// Tells the host that message `sequence` was refused. The other lanes do nothing.
  __device__ void report(std::uint64_t sequence, std::uint32_t length) const {
    if (threadIdx.x % 32 != 0) return;
    const std::uint32_t slot = own_.channel.layout.slot_index(sequence);
    store_packet(own_.fault, {{slot, length, static_cast<std::uint32_t>(sequence)}, 1});
  }

  /// Goes on to its next message; this one was answered, or the whole block answers it.
  __device__ void next() {
    // Relaxed: a number that moves, which orders nothing. Pairs with channel_moved of every warp.
    if (Warp::lane() == 0) {
      store_relaxed_gpu(own_.latest, static_cast<std::uint32_t>(sequence_));
    }
    sequence_ += worker_.groups_per_channel;
  }

 private:
  /// Polls read as many packets as recent contents had: as many as the last one, or half as many as
  /// before. Reading more is traffic that slows all polls down; reading less needs another round
  /// trip.
  __device__ void expect_as(Received received) {
    const std::uint32_t filled = packets_filled(received.length);
    polled_ = filled > polled_ / 2 ? filled : polled_ / 2;
  }

  /// Relaxed: after it, nothing is read that the host wrote before. Pairs with the copy of the stop
  /// word that the CUDA back end enqueues, hence system scope.
  __device__ std::uint32_t load_stop() const { return load_relaxed_sys(worker_.stop); }

  /// The lower half of the GPU's timer: what a message takes is far from its 4 s.
  static __device__ std::uint32_t nanoseconds() {
    std::uint32_t now = 0;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now)::"memory");
    return now;
  }

  __device__ void beat() const {
    if (polls_ % kPollsPerHeartbeat != 0 || Warp::lane() != 0) return;
    // Relaxed: counters. Pair with the CUDA back end's relaxed loads in heartbeats() and count().
    store_relaxed_sys(own_.busy + rank_, busy_);
    if (rank_ != 0) return;
    store_relaxed_sys(own_.heartbeat, std::uint64_t{polls_ / kPollsPerHeartbeat + 1});
  }

  /// Returns whether any warp found a message of the channel since the last call. The messages of
  /// one warp are too few to recognize an idle channel.
  __device__ bool channel_moved() {
    const std::uint32_t latest = load_relaxed_gpu(own_.latest);  // pairs with next()
    const bool moved = Warp::from_first(latest != latest_) != 0;
    latest_ = latest;
    return moved;
  }

  /// Sleeps until a message comes to the channel, or the header of its own next one is there, or it
  /// may look for that one and might not before (then it has not `looked`), or the worker is to
  /// end. Reads 16 bytes between two sleeps, where a poll of a whole slot is up to 512 over PCIe.
  template <class MayLook>
  __device__ void sleep(bool looked, const MayLook& may_look) {
    for (;;) {
      __nanosleep(worker_.idle_sleep_ns);
      const std::uint32_t stop = load_stop();
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
  std::uint32_t latest_ = 0;  ///< as last loaded, valid in lane 0
  std::uint32_t polls_ = 0;
  std::uint32_t busy_ = 0;              ///< nanoseconds
  std::uint32_t polled_ = kMaxPackets;  ///< packets
};

}  // namespace offload::kernels
