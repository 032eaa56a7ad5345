#include "apps/report/merge/run_merge.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "apps/report/merge/merge_intervals.hpp"
#include "apps/report/result/histogram.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"

namespace offload::report {
namespace {

/// With less of their time in common the rates of all of it say little.
constexpr double kEnoughInCommon = 0.9;

/// Merges run `number` of all results.
class RunMerger {
 public:
  RunMerger(const std::vector<Result>& results, std::size_t number)
      : results_(results), number_(number) {
    for (const Result& result : results) runs_.push_back(&result.runs[number]);
  }

  Run merge(std::vector<std::string>& warnings) {
    set_span(warnings);
    add_counters();
    set_rates();
    merged_.service_time_us = latency_of([](const Run& run) { return &run.service_time_us; });
    merged_.connect_time_us = latency_of([](const Run& run) { return &run.connect_time_us; });
    merged_.response_time_us = optional_latency_of(&Run::response_time_us);
    merged_.schedule_lag_us = optional_latency_of(&Run::schedule_lag_us);
    set_in_flight();
    set_verdict();
    merged_.intervals = merge_intervals(runs_, merged_);
    return merged_;
  }

 private:
  void set_span(std::vector<std::string>& warnings) {
    const auto [first, last] =
        std::minmax_element(runs_.begin(), runs_.end(), [](const Run* left, const Run* right) {
          return left->measured_from() < right->measured_from();
        });
    const auto [ends_first, ends_last] =
        std::minmax_element(runs_.begin(), runs_.end(), [](const Run* left, const Run* right) {
          return left->measured_until() < right->measured_until();
        });
    const double in_common = (*ends_first)->measured_until() - (*last)->measured_from();
    if (in_common <= 0) {
      refuse_merge(
          result_of(*ends_first), result_of(*last),
          fmt::format("did not overlap in time in run {}: one ended {:.3f} s before the other "
                      "began",
                      number_ + 1, -in_common));
    }
    merged_.started_at_unix_s = (*first)->started_at_unix_s;
    for (const Run* run : runs_) {
      merged_.started_at_unix_s = std::min(merged_.started_at_unix_s, run->started_at_unix_s);
    }
    merged_.warmup_seconds = (*first)->measured_from() - merged_.started_at_unix_s;
    merged_.duration_seconds = (*ends_last)->measured_until() - (*first)->measured_from();
    const double share = in_common / merged_.duration_seconds;
    if (share < kEnoughInCommon) {
      warnings.push_back(
          fmt::format("in run {} all were measured together for {:.0f} % of the time: the rates "
                      "are for the whole time",
                      number_ + 1, 100 * share));
    }
  }

  const Result& result_of(const Run* run) const {
    return results_[static_cast<std::size_t>(std::find(runs_.begin(), runs_.end(), run) -
                                             runs_.begin())];
  }

  void add_counters() {
    merged_.arrivals = runs_.front()->arrivals;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = *runs_[i];
      if (run.offered_per_second) {
        merged_.offered_per_second =
            merged_.offered_per_second.value_or(0) + *run.offered_per_second;
      }
      merged_.connections += run.connections;
      merged_.max_concurrent_messages =
          std::max(merged_.max_concurrent_messages, run.max_concurrent_messages);
      merged_.operation_count += run.operation_count;
      merged_.valid_responses += run.valid_responses;
      merged_.unanswered_requests += run.unanswered_requests;
      merged_.tx_bytes += run.tx_bytes;
      merged_.rx_bytes += run.rx_bytes;
      for (const auto& [kind, count] : run.errors) {
        merged_.errors[with_host(results_[i], kind)] += count;
      }
    }
  }

  void set_rates() {
    constexpr double kGib = 1U << 30;
    const double seconds = merged_.duration_seconds;
    merged_.tx_data_rate_gib_s = static_cast<double>(merged_.tx_bytes) / kGib / seconds;
    merged_.rx_data_rate_gib_s = static_cast<double>(merged_.rx_bytes) / kGib / seconds;
    merged_.io_rate_miops = static_cast<double>(merged_.operation_count) / 1e6 / seconds;
  }

  template <class Select>
  Latency latency_of(Select select) const {
    HistogramSum sum;
    for (const Run* run : runs_) sum.add(*select(*run));
    return sum.latency();
  }

  std::optional<Latency> optional_latency_of(std::optional<Latency> Run::*member) const {
    HistogramSum sum;
    bool any = false;
    for (const Run* run : runs_) {
      if (const auto& latency = run->*member) {
        sum.add(*latency);
        any = true;
      }
    }
    return any ? std::optional(sum.latency()) : std::nullopt;
  }

  void set_in_flight() {
    for (const Run* run : runs_) {
      const double share = run->duration_seconds / merged_.duration_seconds;
      merged_.in_flight_mean += run->in_flight_mean * share;
      merged_.in_flight_by_littles_law += run->in_flight_by_littles_law * share;
    }
  }

  /// That of the processes that fared worst: each says its own rates.
  void set_verdict() {
    constexpr std::array kFromBestToWorst = {"too_few", "server_late", "client_late", "cut_short"};
    const auto severity = [&](const Run* run) {
      const auto found = std::find(kFromBestToWorst.begin(), kFromBestToWorst.end(),
                                   std::string_view(run->verdict_code));
      return found == kFromBestToWorst.end() ? 0 : found - kFromBestToWorst.begin() + 1;
    };
    const auto worst = std::max_element(
        runs_.begin(), runs_.end(),
        [&](const Run* left, const Run* right) { return severity(left) < severity(right); });
    merged_.verdict_code = (*worst)->verdict_code;
    for (const Run* run : runs_) {
      if (severity(run) != severity(*worst)) continue;
      const std::string text = with_host(result_of(run), run->verdict_text);
      merged_.verdict_text += (merged_.verdict_text.empty() ? "" : "; ") + text;
    }
  }

  const std::vector<Result>& results_;
  std::size_t number_;
  std::vector<const Run*> runs_;
  Run merged_;
};

}  // namespace

Run merge_runs(const std::vector<Result>& results, std::size_t number,
               std::vector<std::string>& warnings) {
  return RunMerger(results, number).merge(warnings);
}

std::string with_host(const Result& result, const std::string& text) {
  const std::string hosts = ", " + result.machine.host + ", ";
  const std::size_t colon = text.find(": ");
  const bool has_host = colon != std::string::npos &&
                        hosts.find(", " + text.substr(0, colon) + ", ") != std::string::npos;
  return has_host ? text : result.machine.host + ": " + text;
}

void refuse_merge(const Result& one, const Result& other, const std::string& why) {
  throw core::Error(
      core::ErrorCode::invalid_value,
      fmt::format("'{}' and '{}' {}", core::escaped(one.file), core::escaped(other.file), why));
}

}  // namespace offload::report
