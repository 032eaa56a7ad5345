#pragma once

#include <cstdint>

#include "core/clock.hpp"

namespace offload::client {

/// A line on standard error that shows how far a run is, rewritten once a second; only if standard
/// error is a terminal. One thread.
class ProgressLine {
 public:
  static constexpr core::Duration kInterval = std::chrono::seconds(1);

  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Wipes the line.
  ~ProgressLine();

  /// `operations`: how many are done. Does nothing if the last line is younger than kInterval.
  void update(std::uint64_t operations);

 private:
  const bool on_terminal_;
  const core::TimePoint start_;
  core::TimePoint shown_at_;
  std::uint64_t shown_ = 0;
};

}  // namespace offload::client
