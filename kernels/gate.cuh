#pragma once

#include "kernels/group.hpp"
#include "kernels/memory_order.hpp"
#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"

namespace offload::kernels {

/// Sets *to to `value` if that is greater.
__device__ inline void max_relaxed_gpu(std::uint64_t* to, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "l"(value)
               : "memory");
}

/// The bound up to which a channel's warps look for long messages: a maximum in device memory that
/// only grows. A fence, which a long response takes, waits for every read under way on PCIe, and
/// reads of a long request queue behind them, so polls of idle warps make both slower
/// (docs/internals/performance.md). While long messages come one at a time, a single warp polls for
/// the next, after the previous one is written. Under load all warps poll: after a short message,
/// or if a message was there at the first poll.
class Gate {
 public:
  __device__ Gate(const PersistentWorker& worker, std::uint32_t group)
      : last_(worker.channels[group / worker.groups_per_channel].gate),
        groups_(worker.groups_per_channel) {}

  /// Returns whether message `sequence` may be polled for. Called by every lane of a warp with the
  /// same argument. Relaxed: it orders nothing, and a bound seen late only delays a poll. Pairs
  /// with found() and open_next() of other warps.
  __device__ bool is_open(std::uint64_t sequence) {
    if (sequence > known_) known_ = load_relaxed_gpu(last_);
    const bool open = Warp::from_first(sequence <= known_) != 0;
    if (open) ++looks_;
    return open;
  }

  /// Records that message `sequence` was found; every lane of its warp must call it. Returns
  /// whether this opened the gate for later messages.
  __device__ bool found(std::uint64_t sequence, Received received) {
    const bool alone = looks_ > 1 && received.arrival == Arrival::plain && received.count == 0;
    looks_ = 0;
    if (alone) return false;
    known_ = sequence + groups_;
    if (Warp::lane() == 0) max_relaxed_gpu(last_, known_);
    return true;
  }

  /// Opens the gate for the message after `sequence`. One thread must call it.
  __device__ void open_next(std::uint64_t sequence) { max_relaxed_gpu(last_, sequence + 1); }

 private:
  std::uint64_t* last_;  ///< the last message that may be looked for
  std::uint32_t groups_;
  std::uint32_t looks_ = 0;  ///< at the slot of the next message
  std::uint64_t known_ = 0;  ///< *last_, as last loaded; a warp's lanes may differ
};

}  // namespace offload::kernels
