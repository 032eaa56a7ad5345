#include "apps/report/merge/merge.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "apps/report/merge/run_merge.hpp"
#include "metrics/confidence.hpp"

namespace offload::report {
namespace {

std::string kind_of(const Run& run) {
  if (!run.offered_per_second) return "a closed loop";
  return fmt::format("an open loop, arrivals {}", run.arrivals.value_or("unknown"));
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
  }
}

/// Two processes of a host do not begin in the same microsecond and measure the same.
void check_distinct(const std::vector<Result>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Result& one = results[j];
      const Result& other = results[i];
      if (one.runs.empty() || other.runs.empty() || one.machine.host != other.machine.host)
        continue;
      const Run& left = one.runs.front();
      const Run& right = other.runs.front();
      if (left.started_at_unix_s == right.started_at_unix_s &&
          left.service_time_us.histogram == right.service_time_us.histogram) {
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
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
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
    if (std::find(hosts.begin(), hosts.end(), result.machine.host) != hosts.end()) continue;
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
        const bool is_new = std::find(values.begin(), values.end(), other) == values.end();
        if (other_name == name && is_new) values.push_back(other);
      }
    }
    if (values.size() > 1) value = fmt::format("{}", fmt::join(values, " | "));
  }
  return options;
}

/// The value of a run under a name of "repeats", such as "service_time_us.p99".
std::optional<double> value_of(const Run& run, const std::string& name) {
  if (name == "io_rate_miops") return run.io_rate_miops;
  const std::size_t point = name.find('.');
  const std::string latency = name.substr(0, point);
  const bool response = latency == "response_time_us" && run.response_time_us.has_value();
  if (point == std::string::npos || (latency != "service_time_us" && !response)) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    if (name.substr(point + 1) == kStatisticNames[i]) {
      return (response ? *run.response_time_us : run.service_time_us).us[i];
    }
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
