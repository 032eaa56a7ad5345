#pragma once

#include <cstdint>

#include "kernels/memory_order.hpp"
#include "kernels/platform.hpp"
#if !defined(__CUDA_ARCH__)
#include <sched.h>

#include <chrono>
#endif

/// Limited waits: a kernel never hangs because a peer, or the card, is gone.
namespace offload::kernels::rdma {

/// The result of an operation, a post or a wait.
enum class WorkResult : std::uint32_t {
  done,
  pending,    ///< not yet, or no room yet
  invalid,    ///< longer than an entry or a queue may be
  failed,     ///< the queue is in error
  timed_out,  ///< the limit of the wait was reached, or the caller was told to stop
};

/// The limit of a wait.
struct WaitLimit {
  std::uint64_t nanoseconds;            ///< from its first looks on
  const std::uint32_t* stop = nullptr;  ///< ends it once it is not 0; may be the host's
};

/// Returns the time of a clock that never goes back.
OFFLOAD_HOST_DEVICE inline std::uint64_t now_ns() {
#if defined(__CUDA_ARCH__)
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
#endif
}

/// One wait. A check that succeeds reads neither clock nor flag.
class Wait {
 public:
  OFFLOAD_HOST_DEVICE explicit Wait(const WaitLimit& limit) : limit_(limit) {}

  /// Must be called after each check that failed; returns whether that was the last one.
  OFFLOAD_HOST_DEVICE bool is_over() {
    ++looks_;
    // The flag may be read over PCIe, so it is checked more rarely than the awaited condition.
    if (limit_.stop != nullptr && looks_ % kLooksAFlag == 0 && is_set(limit_.stop)) return true;
    if (looks_ % kLooksAClock != 0) return false;
#if !defined(__CUDA_ARCH__)
    sched_yield();  // the awaited thread may need this processor
#endif
    // Not at the first check: a clock takes as long as a check, and most waits end before this.
    if (end_ == 0) end_ = now_ns() + limit_.nanoseconds;
    return now_ns() >= end_;
  }

 private:
  static constexpr std::uint64_t kLooksAClock = 16;
  static constexpr std::uint64_t kLooksAFlag = 256;

  /// Relaxed: it orders nothing.
  OFFLOAD_HOST_DEVICE static bool is_set(const std::uint32_t* flag) {
    return load_relaxed_sys(flag) != 0;
  }

  WaitLimit limit_;
  std::uint64_t looks_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace offload::kernels::rdma
