#include "apps/client/run/time_line.hpp"

#include <algorithm>
#include <utility>

namespace offload::client {
namespace {

constexpr core::Duration kSecond = std::chrono::seconds(1);
/// A thread that is this number of seconds behind the others is not waited for.
constexpr std::int64_t kMostBehind = 2;

results::RunInterval second_of(const Interval& interval, core::TimePoint start) {
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

}  // namespace

TimeLine::TimeLine(core::TimePoint start, core::Duration warmup, std::size_t threads,
                   OnSecond on_second)
    : start_(start),
      measured_from_(start + warmup),
      on_second_(std::move(on_second)),
      last_of_thread_(threads, -1) {}

void TimeLine::add(std::size_t thread, const Interval& interval) {
  if (interval.is_empty()) return;  // what a thread ends with
  if (interval.begin < measured_from_) return warmup_total_->merge(interval);
  total_->merge(interval);
  const std::int64_t index = (interval.begin - measured_from_) / kSecond;
  auto& second = open_[std::max(index, completed_ + 1)];
  if (!second) second = std::make_unique<Interval>();
  second->merge(interval);
  last_of_thread_[thread] = index;
  const auto [slowest, fastest] = std::ranges::minmax_element(last_of_thread_);
  complete(std::max(*slowest, *fastest - kMostBehind));
}

void TimeLine::complete(std::int64_t up_to) {
  while (!open_.empty() && open_.begin()->first <= up_to) complete_first();
  completed_ = std::max(completed_, up_to);
}

void TimeLine::complete_first() {
  const auto first = open_.begin();
  seconds_.push_back(second_of(*first->second, start_));
  completed_ = std::max(completed_, first->first);
  open_.erase(first);
  on_second_(seconds_.back());
}

}  // namespace offload::client
