#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace offload::core {

/// Sends the log to standard error as "time level program: text". `level`: one of log_levels().
void start_log(const std::string& program, const std::string& level);

/// What start_log takes: trace, debug, info, warning, error, off.
const std::vector<std::string>& log_levels();

/// Lets one message a second of its kind through and counts the rest, so that a hostile client
/// cannot fill a disk. Not thread-safe: one per thread and kind.
class RateLimit {
 public:
  /// Whether to log now; if so, how many were held back since the last is in suppressed().
  bool allow(TimePoint now) noexcept {
    if (now - last_ < std::chrono::seconds(1) && last_ != TimePoint{}) {
      ++held_back_;
      return false;
    }
    last_ = now;
    suppressed_ = held_back_;
    held_back_ = 0;
    return true;
  }
  [[nodiscard]] std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  TimePoint last_{};
  std::uint64_t held_back_ = 0;
  std::uint64_t suppressed_ = 0;
};

}  // namespace offload::core
