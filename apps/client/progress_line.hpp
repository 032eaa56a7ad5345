#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "core/clock.hpp"

namespace offload::client {

/// A line on standard error that shows the progress of a run, rewritten once a second. It is shown
/// only on a terminal. One thread.
class ProgressLine {
 public:
  static constexpr core::Duration kInterval = std::chrono::seconds(1);

  ProgressLine()
      : on_terminal_(::isatty(STDERR_FILENO) != 0), start_(core::Clock::now()), shown_at_(start_) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Wipes the line.
  ~ProgressLine() {
    if (on_terminal_ && shown_at_ != start_) std::fputs("\r\033[K", stderr);
  }

  /// `operations`: the number that is complete. Does nothing within kInterval of the last update.
  void update(std::uint64_t operations) {
    const auto now = core::Clock::now();
    if (!on_terminal_ || now - shown_at_ < kInterval) return;
    const double rate =
        static_cast<double>(operations - shown_) / core::to_seconds(now - shown_at_) / 1e6;
    fmt::print(stderr, "\r{:.0f} s: {} operations, {:.3f} MIOP/s\033[K",
               core::to_seconds(now - start_), operations, rate);
    shown_at_ = now;
    shown_ = operations;
  }

 private:
  const bool on_terminal_;
  const core::TimePoint start_;
  core::TimePoint shown_at_;
  std::uint64_t shown_ = 0;
};

}  // namespace offload::client
