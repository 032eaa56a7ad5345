#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "apps/client/load/interval.hpp"
#include "core/clock.hpp"
#include "results/result.hpp"

namespace offload::client {

inline constexpr core::Duration kSecond = std::chrono::seconds(1);

/// A thread that is this number of seconds behind the others is not waited for.
inline constexpr std::int64_t kMostBehind = 2;

inline results::RunInterval second_of(const Interval& interval, core::TimePoint start) {
  results::RunInterval second;
  second.start_s = core::to_seconds(interval.begin - start);
  second.length_s = core::to_seconds(interval.end - interval.begin);
  second.operations = interval.answered;
  second.valid = interval.valid;
  second.errors = interval.errors.total();
  second.in_flight = second.length_s > 0 ? interval.in_flight_ns / (second.length_s * 1e9) : 0;
  second.service_time_us = results::IntervalLatency::of(interval.service);
  second.response_time_us = results::IntervalLatency::of(interval.response);
  return second;
}

/// The load threads' records, joined second by second. Seconds count from the end of the warm-up,
/// which is separate. One thread.
class TimeLine {
 public:
  using OnSecond = std::function<void(const results::RunInterval&)>;

  /// `threads`: how many record. `on_second`: called for each second once it is complete.
  /// `on_measured`: called for each interval after the warm-up, with the number of its thread.
  using OnMeasured = std::function<void(std::size_t thread, const Interval& interval)>;
  TimeLine(
      core::TimePoint start, core::Duration warmup, std::size_t threads, OnSecond on_second,
      OnMeasured on_measured = [](std::size_t, const Interval&) {})
      : start_(start),
        measured_from_(start + warmup),
        on_second_(std::move(on_second)),
        on_measured_(std::move(on_measured)),
        last_of_thread_(threads, -1) {}

  /// Adds an interval of thread number `thread`. One that comes after its second was completed
  /// counts to the next.
  void add(std::size_t thread, const Interval& interval) {
    if (interval.is_empty()) return;  // what a thread ends with
    if (interval.begin < measured_from_) return warmup_total_->merge(interval);
    total_->merge(interval);
    on_measured_(thread, interval);
    const std::int64_t index = (interval.begin - measured_from_) / kSecond;
    auto& second = open_[std::max(index, completed_ + 1)];
    if (!second) second = std::make_unique<Interval>();
    second->merge(interval);
    last_of_thread_[thread] = index;
    const auto [slowest, fastest] = std::ranges::minmax_element(last_of_thread_);
    complete(std::max(*slowest, *fastest - kMostBehind));
  }
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
  void complete(std::int64_t up_to) {
    while (!open_.empty() && open_.begin()->first <= up_to) complete_first();
    completed_ = std::max(completed_, up_to);
  }
  void complete_first() {
    const auto first = open_.begin();
    seconds_.push_back(second_of(*first->second, start_));
    completed_ = std::max(completed_, first->first);
    open_.erase(first);
    on_second_(seconds_.back());
  }

  core::TimePoint start_;
  core::TimePoint measured_from_;
  OnSecond on_second_;
  OnMeasured on_measured_;
  std::vector<std::int64_t> last_of_thread_;  ///< the last second of which each has told
  std::map<std::int64_t, std::unique_ptr<Interval>> open_;
  std::int64_t completed_ = -1;
  std::vector<results::RunInterval> seconds_;
  std::unique_ptr<Interval> total_ = std::make_unique<Interval>();
  std::unique_ptr<Interval> warmup_total_ = std::make_unique<Interval>();
};

}  // namespace offload::client
