#include "apps/client/experiment/slices.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offload::client {
namespace {

/// A tail needs that many latencies, as in results::kFewestSamples.
constexpr std::size_t kFewestForTail = 100;
constexpr double kBusyClient = 0.95;

/// Returns the value that a share of `values` does not exceed. It is exact, because the steps of a
/// histogram are nearly as wide as the differences that are looked for.
double quantile(std::vector<double>& values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<std::size_t>(rank)];
}

}  // namespace

SliceRunner::SliceRunner(Options options, core::Signals& signals)
    : options_(std::move(options)),
      signals_(signals),
      seed_(options_.seed),
      load_(options_, signals) {}

Slice SliceRunner::run(std::uint64_t number) {
  options_.seed = seed_ + number;
  core::TimePoint measured_from{};
  RunObserver observer;
  observer.log = &log_;
  observer.on_start = [&] { measured_from = core::Clock::now() + options_.warmup; };
  const RunResult result = run_load(options_, {options_.rate, options_.max_concurrent_messages},
                                    load_, signals_, observer);
  Slice slice;
  slice.interrupted = result.interrupted;
  slice.failed = result.has_errors() || result.wrong() != 0;
  if (!result.faults.empty()) slice.fault = result.faults.front();
  slice.client_late = result.verdict.code == LoadVerdict::Code::client_late;
  slice.figures = figures_of(result, measured_from);
  if (!slice.interrupted) count(result);
  add_to_sum(result);
  return slice;
}

SliceFigures SliceRunner::figures_of(const RunResult& result, core::TimePoint measured_from) {
  const bool is_open_loop = options_.is_open_loop();
  latencies_.clear();
  for (auto& chunk : log_.take()) {
    for (const RequestRecord& record : chunk) {
      const core::TimePoint begin = is_open_loop ? record.intended : record.sent;
      if (record.error || begin < measured_from) continue;
      latencies_.push_back(core::to_micros(record.done - begin));
    }
    log_.give_back(std::move(chunk));
  }
  SliceFigures figures;
  const auto set = [&](SliceFigure figure, double us) {
    figures.us[static_cast<std::size_t>(figure)] = us;
  };
  // No answer within the slice: each figure is at least its time. Without a request there is none.
  const double slice_us = core::to_micros(*options_.duration);
  if (latencies_.empty() && is_open_loop && result.total->due == 0) return figures;
  if (latencies_.empty()) latencies_.push_back(slice_us);
  set(SliceFigure::low, quantile(latencies_, kLowQuantile));
  set(SliceFigure::p50, quantile(latencies_, 0.5));
  if (latencies_.size() >= kFewestForTail) set(SliceFigure::p99, quantile(latencies_, 0.99));
  const double rate = result.valid_per_second();
  if (!is_open_loop) set(SliceFigure::per_answer, rate > 0 ? 1e6 / rate : slice_us);
  return figures;
}

void SliceRunner::count(const RunResult& result) {
  using enum LoadVerdict::Code;
  ++counts_.slices;
  counts_.client_late += result.verdict.code == client_late ? 1 : 0;
  counts_.server_late += result.verdict.code == server_late ? 1 : 0;
  counts_.client_busy += result.verdict.code == closed_loop && result.busy > kBusyClient ? 1 : 0;
}

void SliceRunner::add_to_sum(const RunResult& result) {
  if (sum_.started_at_unix_s == 0) {
    sum_.setting = result.setting;
    sum_.started_at_unix_s = result.started_at_unix_s;
    sum_.udp = result.udp;
  }
  const double offset = result.started_at_unix_s - sum_.started_at_unix_s;
  for (results::RunInterval second : result.seconds) {
    second.start_s += offset;
    sum_.seconds.push_back(std::move(second));
  }
  measured_ += result.total->end - result.total->begin;
  sum_.total->merge(*result.total);
  sum_.unanswered += result.unanswered;
  sum_.busy = std::max(sum_.busy, result.busy);
  sum_.faults.insert(sum_.faults.end(), result.faults.begin(), result.faults.end());
  sum_.interrupted = sum_.interrupted || result.interrupted;
}

RunResult SliceRunner::take_sum() {
  // Without the gaps, for means over time. Each slice has responses after the end of its sending:
  // these count, as the time until then does.
  sum_.total->begin = sum_.total->end - measured_;
  sum_.duration = measured_;
  sum_.total->answered_after_end = 0;
  sum_.total->valid_after_end = 0;
  sum_.total->rx_bytes_after_end = 0;
  if (sum_.interrupted || sum_.has_errors()) {
    sum_.verdict = {LoadVerdict::Code::cut_short,
                    "there is no verdict: an error or a signal ended a slice"};
  } else {
    sum_.verdict = judge_run(sum_.load_seen(options_.rate, options_.lag_tolerance));
  }
  return std::move(sum_);
}

}  // namespace offload::client
