#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/client/load/interval.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The latencies of an interval as they are kept: its figures and the encoded histogram.
struct LatencyFigures {
  std::uint64_t count = 0;
  double p50_us = 0;
  double p99_us = 0;
  core::Duration max{};
  std::string histogram;  ///< HdrHistogram's V2 encoding, nanoseconds

  static LatencyFigures of(const metrics::LatencyHistogram& histogram);
};

/// A second or so of a run, over all threads.
struct Second {
  double start_s = 0;  ///< since the start of the run
  double length_s = 0;
  std::uint64_t answered = 0;
  std::uint64_t valid = 0;
  std::uint64_t errors = 0;
  double in_flight = 0;  ///< the mean
  LatencyFigures service;
  LatencyFigures response;  ///< count 0 in a closed loop
};

/// The load threads' records, joined second by second. Seconds count from the end of the warm-up,
/// which is separate. One thread.
class TimeLine {
 public:
  using OnSecond = std::function<void(const Second&)>;

  /// `threads`: how many record. `on_second`: called for each second once it is complete.
  TimeLine(core::TimePoint start, core::Duration warmup, std::size_t threads, OnSecond on_second);

  /// Adds an interval of thread number `thread`. One that comes after its second was completed
  /// counts to the next.
  void add(std::size_t thread, const Interval& interval);
  /// Completes all seconds: nothing more is added.
  void finish() {
    while (!open_.empty()) complete_first();
  }

  [[nodiscard]] const std::vector<Second>& seconds() const noexcept { return seconds_; }
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
  std::vector<Second> seconds_;
  std::unique_ptr<Interval> total_ = std::make_unique<Interval>();
  std::unique_ptr<Interval> warmup_total_ = std::make_unique<Interval>();
};

}  // namespace offload::client
