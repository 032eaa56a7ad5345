#pragma once

#include <functional>

#include "core/clock.hpp"

/// The time of a fuzz target: only the script advances it, so that a run depends on its input alone
/// and nothing sleeps. virtual_time.cpp defines clock_gettime, epoll_pwait2 and
/// poll for the whole program; CLOCK_MONOTONIC is virtual while a VirtualTime is there.
namespace offload::fuzz {

class VirtualTime {
 public:
  VirtualTime();
  ~VirtualTime();
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  /// Lets the time pass at once.
  void advance(core::Duration by) noexcept;
  /// Lets the time pass in the next epoll_pwait2(2), as for a thread that slept: anything before it
  /// is an event by the time that the thread wakes up.
  void advance_in_sleep(core::Duration by) noexcept;
  /// Called by a poll(2) that finds no event, instead of waiting, until it returns false: then the
  /// time of the call passes.
  std::function<bool()> on_wait;
};

}  // namespace offload::fuzz
