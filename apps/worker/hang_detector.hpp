#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/clock.hpp"

namespace offload::worker {

/// A detector of a thread that hangs: that stays in one step for longer than the step may take, as
/// in a call of a driver that does not return.
///
/// The watching thread adds up its own intervals and reads no clock: a process that is stopped as a
/// whole (SIGSTOP, a debugger) has not hung when it goes on.
class HangDetector {
 public:
  static constexpr core::Duration kNoLimit = core::Duration::max();

  /// On the watched thread: a step begins, which takes `limit` at most, to the millisecond.
  void enter(core::Duration limit) noexcept {
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<core::Duration>(limit, std::chrono::milliseconds(kNone)));
    // Relaxed, as are the loads in look(): one word has all of it.
    step_.store(std::uint64_t{++entered_} << 32 | static_cast<std::uint32_t>(milliseconds.count()),
                std::memory_order_relaxed);
  }

  /// On the watching thread, once each `interval`: whether the step has outlasted its limit.
  bool look(core::Duration interval) noexcept {
    const std::uint64_t step = step_.load(std::memory_order_relaxed);
    lasted_ = step == seen_ ? lasted_ + interval : core::Duration{};
    seen_ = step;
    const auto limit = static_cast<std::uint32_t>(step);
    return limit != kNone && lasted_ > std::chrono::milliseconds(limit);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  std::atomic<std::uint64_t> step_{kNone};  ///< its number, and its limit in milliseconds
  std::uint32_t entered_ = 0;               ///< steps; the watched thread's
  std::uint64_t seen_ = kNone;              ///< the watching thread's, as is the next
  core::Duration lasted_{};
};

}  // namespace offload::worker
