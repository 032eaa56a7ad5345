#pragma once

#include <time.h>

#include <chrono>

namespace offload::core {

/// The clock of every timeout and measurement: monotonic, read through the vDSO (no system call).
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// Returns the time of the kernel's last tick, which is up to 10 ms ago (1/CONFIG_HZ): it is read
/// from memory, without the processor's counter.
inline TimePoint time_of_tick() noexcept {
  timespec tick{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
  return TimePoint(std::chrono::seconds(tick.tv_sec) + std::chrono::nanoseconds(tick.tv_nsec));
}

/// The clock of time limits, which stands still while its thread is stopped. There is one for each
/// progress::Engine, so times of two threads must not be compared; a separate type distinguishes it
/// from Clock.
struct RunClock {
  using duration = Clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunClock>;
  static constexpr bool is_steady = true;
};
using RunTime = RunClock::time_point;

/// `seconds` as a Duration.
constexpr Duration seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// A Duration as fractional seconds.
constexpr double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
constexpr double to_micros(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace offload::core
