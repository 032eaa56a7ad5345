#pragma once

#include <cstdint>

#include "core/clock.hpp"

namespace offload::client {

/// A line on standard error that shows the progress of a run, rewritten once a second. It is shown
/// only on a terminal. One thread.
class ProgressLine {
 public:
  static constexpr core::Duration kInterval = std::chrono::seconds(1);

  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Wipes the line.
  ~ProgressLine();

  /// `operations`: the number that is complete. Does nothing within kInterval of the last update.
  void update(std::uint64_t operations);

 private:
  const bool on_terminal_;
  const core::TimePoint start_;
  core::TimePoint shown_at_;
  std::uint64_t shown_ = 0;
};

}  // namespace offload::client
