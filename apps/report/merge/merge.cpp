#include "apps/report/merge/merge.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "apps/report/histograms.hpp"
#include "apps/report/merge/merge_intervals.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "metrics/confidence.hpp"

namespace offload::report {
namespace {

/// With less of their time in common the rates of all of it say little.
constexpr double kEnoughInCommon = 0.9;

/// Puts the host in front, once: a merged result, of hosts "a, b", has one of them there already.
std::string with_host(const Result& result, const std::string& text) {
  const std::string hosts = ", " + result.machine.host + ", ";
  const std::size_t colon = text.find(": ");
  const bool has_host = colon != std::string::npos &&
                        hosts.find(", " + text.substr(0, colon) + ", ") != std::string::npos;
  return has_host ? text : result.machine.host + ": " + text;
}

/// Throws the Error (invalid_value): "'a.json' and 'b.json' `why`".
[[noreturn]] void refuse_merge(const Result& one, const Result& other, const std::string& why) {
  throw core::Error(
      core::ErrorCode::invalid_value,
      fmt::format("'{}' and '{}' {}", core::escaped(one.file), core::escaped(other.file), why));
}

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
    merge_kinds();
    set_verdict();
    merged_.intervals = merge_intervals(runs_, merged_);
    return merged_;
  }

 private:
  void set_span(std::vector<std::string>& warnings) {
    const auto [first, last] = std::ranges::minmax_element(runs_, {}, &Run::measured_from);
    const auto [ends_first, ends_last] =
        std::ranges::minmax_element(runs_, {}, &Run::measured_until);
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
    return results_[static_cast<std::size_t>(std::ranges::find(runs_, run) - runs_.begin())];
  }

  void add_counters() {
    merged_.arrivals = runs_.front()->arrivals;
    std::map<std::string, std::uint64_t> errors;
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
        errors[with_host(results_[i], kind)] += count;
      }
    }
    merged_.errors.assign(errors.begin(), errors.end());
  }

  void set_rates() {
    constexpr double kGib = 1U << 30;
    const double seconds = merged_.duration_seconds;
    for (const Run* run : runs_) {
      const double share = run->duration_seconds / seconds;
      merged_.tx_data_rate_gib_s += run->tx_data_rate_gib_s * share;
      merged_.rx_data_rate_gib_s += run->rx_data_rate_gib_s * share;
    }
    merged_.tx_wire_rate_gib_s = static_cast<double>(merged_.tx_bytes) / kGib / seconds;
    merged_.rx_wire_rate_gib_s = static_cast<double>(merged_.rx_bytes) / kGib / seconds;
    merged_.io_rate_miops = static_cast<double>(merged_.operation_count) / 1e6 / seconds;
  }

  template <class Select>
  Latency latency_of(Select select) const {
    HistogramSum sum;
    for (const Run* run : runs_) sum.add(*select(*run));
    return sum.latency();
  }

  std::optional<Latency> optional_latency_of(std::optional<Latency> Run::*member) const {
    const bool any =
        std::ranges::any_of(runs_, [&](const Run* run) { return (run->*member).has_value(); });
    if (!any) return std::nullopt;
    return latency_of([&](const Run& run) { return &*(run.*member); });
  }

  /// All runs have the same kinds, in any order.
  void merge_kinds() {
    for (const KindFigures& first : runs_.front()->kinds) {
      merged_.kinds.push_back(merge_kind(first.name));
    }
  }

  KindFigures merge_kind(const std::string& name) const {
    const auto find = [&](const Run& run) {
      return &*std::ranges::find(run.kinds, name, &KindFigures::name);
    };
    KindFigures merged;
    merged.name = name;
    merged.port = find(*runs_.front())->port;
    std::map<std::string, std::uint64_t> errors;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const KindFigures& kind = *find(*runs_[i]);
      if (kind.offered_per_second) {
        merged.offered_per_second =
            merged.offered_per_second.value_or(0) + *kind.offered_per_second;
      }
      merged.connections += kind.connections;
      merged.valid_per_second +=
          kind.valid_per_second * runs_[i]->duration_seconds / merged_.duration_seconds;
      merged.operation_count += kind.operation_count;
      merged.valid_responses += kind.valid_responses;
      for (const auto& [error, count] : kind.errors) errors[with_host(results_[i], error)] += count;
    }
    merged.share =
        merged.offered_per_second
            ? *merged.offered_per_second / merged_.offered_per_second.value_or(1)
            : static_cast<double>(merged.connections) / static_cast<double>(merged_.connections);
    merged.errors.assign(errors.begin(), errors.end());
    merged.service_time_us =
        latency_of([&](const Run& run) { return &find(run)->service_time_us; });
    if (merged_.response_time_us) {
      merged.response_time_us =
          latency_of([&](const Run& run) { return &*find(run)->response_time_us; });
    }
    return merged;
  }

  void set_in_flight() {
    for (const Run* run : runs_) {
      const double share = run->duration_seconds / merged_.duration_seconds;
      merged_.in_flight_mean += run->in_flight_mean * share;
      merged_.in_flight_by_littles_law += run->in_flight_by_littles_law * share;
    }
  }

  /// That of the processes that fared worst, with the sentence of the first, and their number.
  void set_verdict() {
    const auto severity = [](const Run* run) { return severity_of(*run); };
    const auto worst = std::ranges::max_element(runs_, {}, severity);
    merged_.verdict_code = verdict_code_of(**worst);
    merged_.verdict_text = with_host(result_of(*worst), verdict_text_of(**worst));
    const auto alike = std::ranges::count(runs_, severity(*worst), severity);
    if (runs_.size() > 1) {
      merged_.verdict_text +=
          fmt::format("; {} of {} processes have this verdict", alike, runs_.size());
    }
  }

  const std::vector<Result>& results_;
  std::size_t number_;
  std::vector<const Run*> runs_;
  Run merged_;
};

/// Merges run `number` of all results, which are of one kind of load. Throws Error if they did not
/// run at the same time; adds to `warnings` if they did so in part.
Run merge_runs(const std::vector<Result>& results, std::size_t number,
               std::vector<std::string>& warnings) {
  return RunMerger(results, number).merge(warnings);
}

std::string kind_of(const Run& run) {
  if (!run.offered_per_second) return "a closed loop";
  return fmt::format("an open loop, arrivals {}", run.arrivals.value_or("unknown"));
}

/// "find at port 12345, hash at port 12346"
std::string kinds_of(const Run& run) {
  std::vector<std::string> kinds;
  for (const KindFigures& kind : run.kinds) {
    kinds.push_back(fmt::format("{} at port {}", core::escaped(kind.name), kind.port));
  }
  std::ranges::sort(kinds);
  return kinds.empty() ? "one kind" : fmt::format("{}", fmt::join(kinds, ", "));
}

void check_alike(const Result& one, const Result& other) {
  if (one.is_search || other.is_search) {
    refuse_merge(one, other, "cannot be merged: the steps of a search depend on its measurements");
  }
  if (one.runs.size() != other.runs.size()) {
    refuse_merge(one, other,
                 fmt::format("have {} and {} runs", one.runs.size(), other.runs.size()));
  }
  for (std::size_t i = 0; i < one.runs.size(); ++i) {
    if (const auto left = kind_of(one.runs[i]), right = kind_of(other.runs[i]); left != right) {
      refuse_merge(one, other,
                   fmt::format("have different loads in run {}: {} and {}", i + 1, left, right));
    }
    if (one.runs[i].response_time_us.has_value() != other.runs[i].response_time_us.has_value()) {
      refuse_merge(one, other, fmt::format("differ in run {}: only one has response times", i + 1));
    }
    if (const auto left = kinds_of(one.runs[i]), right = kinds_of(other.runs[i]); left != right) {
      refuse_merge(
          one, other,
          fmt::format("have different kinds of requests in run {}: {} and {}", i + 1, left, right));
    }
  }
}

/// Two processes of a host that run at the same time do not measure the same, unless that is
/// little.
void check_distinct(const std::vector<Result>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Result& one = results[j];
      const Result& other = results[i];
      if (one.runs.empty() || other.runs.empty() || one.machine.host != other.machine.host)
        continue;
      const Run& left = one.runs.front();
      const Run& right = other.runs.front();
      const bool overlap = left.measured_from() < right.measured_until() &&
                           right.measured_from() < left.measured_until();
      const bool is_telling = left.started_at_unix_s == right.started_at_unix_s ||
                              (overlap && !has_few_responses(left));
      if (is_telling && left.service_time_us.histogram == right.service_time_us.histogram) {
        refuse_merge(one, other, "are the same result");
      }
    }
  }
}

/// All texts that differ, in their order: "a, b".
std::string joined(const std::vector<Result>& results,
                   const std::function<std::string(const Result&)>& text_of) {
  std::vector<std::string> texts;
  for (const Result& result : results) {
    const std::string text = text_of(result);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Machine merge_machines(const std::vector<Result>& results) {
  Machine machine;
  machine.host = joined(results, [](const Result& each) { return each.machine.host; });
  machine.system = joined(results, [](const Result& each) { return each.machine.system; });
  machine.processor = joined(results, [](const Result& each) { return each.machine.processor; });
  std::vector<std::string> hosts;
  for (const Result& result : results) {
    if (std::ranges::find(hosts, result.machine.host) != hosts.end()) continue;
    hosts.push_back(result.machine.host);
    machine.processors += result.machine.processors;
  }
  return machine;
}

/// Those of the first; of one that differs elsewhere all values, as a text.
std::vector<std::pair<std::string, std::string>> merge_options(const std::vector<Result>& results) {
  auto options = results.front().options;
  for (auto& [name, value] : options) {
    std::vector<std::string> values;
    for (const Result& result : results) {
      for (const auto& [other_name, other] : result.options) {
        const bool is_new = std::ranges::find(values, other) == values.end();
        if (other_name == name && is_new) values.push_back(other);
      }
    }
    value = fmt::format("{}", fmt::join(values, " | "));
  }
  return options;
}

/// The value of a run under a name of "repeats", such as "service_time_us.p99"; nothing if it has
/// too few latencies for it.
std::optional<double> value_of(const Run& run, const std::string& name) {
  if (name == "io_rate_miops") return run.io_rate_miops;
  const std::size_t point = name.find('.');
  const std::string member = name.substr(0, point);
  const bool response = member == "response_time_us" && run.response_time_us.has_value();
  if (point == std::string::npos || (member != "service_time_us" && !response)) {
    return std::nullopt;
  }
  const Latency& latency = response ? *run.response_time_us : run.service_time_us;
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    const bool has = latency.has(static_cast<Statistic>(i));
    if (has && name.substr(point + 1) == kStatisticNames[i]) return latency.us[i];
  }
  return std::nullopt;
}

/// Anew, of the merged runs.
void set_repeats(const Result& first, Result& merged) {
  for (const auto& [name, estimate] : first.repeats) {
    std::vector<double> values;
    for (const Run& run : merged.runs) {
      if (const auto value = value_of(run, name)) values.push_back(*value);
    }
    if (values.size() < 3 || values.size() != merged.runs.size()) continue;
    const auto [middle, low, high] = metrics::estimate_median(values);
    merged.repeats.emplace_back(name, RepeatEstimate{middle, low, high, 0.95});
  }
}

std::string worst_status(const std::vector<Result>& results) {
  std::string worst = "ok";
  for (const Result& result : results) {
    if (result.status == "failed") return result.status;
    if (result.status == "interrupted") worst = result.status;
  }
  return worst;
}

}  // namespace

Merged merge(const std::vector<Result>& results) {
  for (const Result& result : results) check_alike(results.front(), result);
  check_distinct(results);
  Merged merged;
  Result& whole = merged.result;
  whole.version = joined(results, [](const Result& each) { return each.version; });
  whole.revision = joined(results, [](const Result& each) { return each.revision; });
  whole.machine = merge_machines(results);
  whole.options = merge_options(results);
  whole.status = worst_status(results);
  for (const Result& result : results) {
    // The command line looks as if a shell had begun them together.
    if (&result != &results.front()) whole.command_line.emplace_back("&");
    whole.command_line.insert(whole.command_line.end(), result.command_line.begin(),
                              result.command_line.end());
    for (const std::string& fault : result.faults) whole.faults.push_back(with_host(result, fault));
  }
  for (std::size_t i = 0; i < results.front().runs.size(); ++i) {
    whole.runs.push_back(merge_runs(results, i, merged.warnings));
  }
  set_repeats(results.front(), whole);
  return merged;
}

}  // namespace offload::report
