#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "apps/client/load/interval.hpp"
#include "core/clock.hpp"
#include "results/result.hpp"

namespace offload::client {

/// The load threads' records, joined second by second. Seconds count from the end of the warm-up,
/// which is separate. One thread.
class TimeLine {
 public:
  using OnSecond = std::function<void(const results::RunInterval&)>;

  /// `threads`: how many record. `on_second`: called for each second once it is complete.
  TimeLine(core::TimePoint start, core::Duration warmup, std::size_t threads, OnSecond on_second);

  /// Adds an interval of thread number `thread`. One that comes after its second was completed
  /// counts to the next.
  void add(std::size_t thread, const Interval& interval);
  /// Completes all seconds: nothing more is added.
  void finish() {
    while (!open_.empty()) complete_first();
  }

  [[nodiscard]] const std::vector<results::RunInterval>& seconds() const noexcept {
    return seconds_;
  }
  /// All of them together.
  [[nodiscard]] const Interval& total() const noexcept { return *total_; }
  [[nodiscard]] const Interval& warmup() const noexcept { return *warmup_total_; }

 private:
  void complete(std::int64_t up_to);
  void complete_first();

  core::TimePoint start_;
  core::TimePoint measured_from_;
  OnSecond on_second_;
  std::vector<std::int64_t> last_of_thread_;  ///< the last second of which each has told
  std::map<std::int64_t, std::unique_ptr<Interval>> open_;
  std::int64_t completed_ = -1;
  std::vector<results::RunInterval> seconds_;
  std::unique_ptr<Interval> total_ = std::make_unique<Interval>();
  std::unique_ptr<Interval> warmup_total_ = std::make_unique<Interval>();
};

}  // namespace offload::client
