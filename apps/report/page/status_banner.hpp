#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/report/numbers.hpp"
#include "apps/report/page/html_text.hpp"
#include "apps/report/vocabulary.hpp"
#include "metrics/confidence.hpp"

namespace offload::report {

/// A server that fails every request makes a fault of each.
inline constexpr std::size_t kMostFaultsShown = 20;

struct Totals {
  std::uint64_t responses = 0;
  std::uint64_t valid = 0;
  std::uint64_t errors = 0;
  std::uint64_t unanswered = 0;
};

inline Totals totals_of(const Result& result) {
  Totals totals;
  for (const Run& run : result.runs) {
    totals.responses += run.operation_count;
    totals.valid += run.valid_responses;
    totals.errors += run.error_count();
    totals.unanswered += run.unanswered_requests;
  }
  return totals;
}

/// Errors by kind and faults of a result, as list items.
inline std::string complaints_of(const Result& result) {
  std::string items;
  const auto add = [&items](const std::string& html) { items += "<li>" + html + "</li>"; };
  std::map<std::string, std::uint64_t> errors;
  for (const Run& run : result.runs) {
    for (const auto& [kind, count] : run.errors) errors[kind] += count;
  }
  for (const auto& [kind, count] : errors) add(html_text(kind) + ": " + counted(count));
  if (const auto unanswered = totals_of(result).unanswered; unanswered != 0) {
    add("requests without a response: " + counted(unanswered));
  }
  const std::size_t shown = std::min(result.faults.size(), kMostFaultsShown);
  for (std::size_t i = 0; i < shown; ++i) add(html_text(result.faults[i]));
  if (result.faults.size() > shown) add(fmt::format("and {} more", result.faults.size() - shown));
  return items;
}

inline std::string banner(const char* kind, const std::string& title, const std::string& html) {
  return fmt::format("<div class=\"banner {}\" role=\"status\"><p>{}</p>{}</div>\n", kind, title,
                     html);
}

/// The median of the runs' values of a figure.
template <class Get>
double median_of(const Result& result, Get get) {
  std::vector<double> values;
  for (const Run& run : result.runs) values.push_back(get(run));
  return metrics::estimate_median(values).middle;
}

/// Not of a scan or a search, whose runs have no median that means anything.
inline bool has_one_load(const Result& result) {
  const Run& first = result.runs.front();
  return std::ranges::all_of(result.runs, [&](const Run& run) {
    return run.offered_per_second == first.offered_per_second &&
           run.max_concurrent_messages == first.max_concurrent_messages;
  });
}

/// The figures that people ask for first: "250,000 /s; service time p50 40 µs, p99 80 µs, ..."
inline std::string headline_of(const Result& result) {
  if (!has_one_load(result)) {
    return fmt::format("<p class=\"headline\">{} runs with different loads</p>",
                       result.runs.size());
  }
  const auto rate = median_of(result, [](const Run& run) { return run.io_rate_miops * 1e6; });
  std::string text = result.runs.size() == 1
                         ? std::string()
                         : fmt::format("median of {} runs: ", result.runs.size());
  text += grouped(rate, 0) + " responses a second";
  const bool response = std::ranges::all_of(
      result.runs, [](const Run& run) { return run.response_time_us.has_value(); });
  text += response ? "; response time" : "; service time";
  for (const auto& [name, statistic] : {std::pair{" p50 ", Statistic::p50},
                                        {", p99 ", Statistic::p99},
                                        {", max ", Statistic::max}}) {
    const auto latency = [&](const Run& run) -> const Latency& {
      return response ? *run.response_time_us : run.service_time_us;
    };
    const bool is_known = std::ranges::all_of(
        result.runs, [&, each = statistic](const Run& run) { return latency(run).has(each); });
    text += name + (is_known ? time_text(median_of(result,
                                                   [&, each = statistic](const Run& run) {
                                                     return latency(run).at(each);
                                                   }))
                             : std::string("unknown"));
  }
  const Totals totals = totals_of(result);
  if (totals.errors + totals.unanswered != 0) {
    text += "; latencies of the requests that were answered";
  }
  return "<p class=\"headline\">" + text + "</p>";
}

/// Returns the sentence of the worst verdict, and how many runs have it; empty if the server kept
/// up in all runs of an open loop.
inline std::string verdict_of(const Result& result) {
  const auto worst = std::ranges::max_element(result.runs, {}, severity_of);
  if (worst == result.runs.end() || severity_of(*worst) == 0) return {};
  const auto alike = std::ranges::count(result.runs, severity_of(*worst), severity_of);
  const std::string share =
      result.runs.size() == 1
          ? std::string()
          : fmt::format("in {} of {} runs, such as this one: ", alike, result.runs.size());
  return share + html_text(verdict_text_of(*worst));
}

/// Says which run has too few responses for a statement; empty if none has.
inline std::string too_few_of(const Result& result) {
  const auto few = std::ranges::find_if(result.runs, has_few_responses);
  if (few == result.runs.end()) return {};
  return fmt::format("a run has only {} right {}: {} are needed",
                     counted(few->service_time_us.count),
                     few->service_time_us.count == 1 ? "response" : "responses", kFewestResponses);
}

/// How a result ended, as HTML: its errors and faults if there are any, its verdict if the load was
/// not what was asked for, then the figures that people ask for first. `name`: what the page calls
/// it, HTML already.
inline std::string status_banner(const std::string& name, const Result& result) {
  const std::string items = complaints_of(result);
  const Totals totals = totals_of(result);
  const std::string verdict = verdict_of(result);
  const std::string figures = (verdict.empty() ? "" : "<p>" + verdict + "</p>") +
                              (totals.responses == 0 ? "" : headline_of(result));
  if (result.status == "failed" || !items.empty()) {
    return banner("bad", name + " failed", "<ul>" + items + "</ul>" + figures);
  }
  if (result.status == "interrupted") {
    return banner("warn", name + " was interrupted: its last run is not whole", figures);
  }
  if (totals.responses == 0) return banner("warn", name + " has no responses", {});
  if (!verdict.empty()) return banner("warn", name + ": " + verdict, headline_of(result));
  if (const std::string few = too_few_of(result); !few.empty()) {
    return banner("warn", name + ": " + few, figures);
  }
  return banner("good",
                fmt::format("{}: no errors; {} of {} responses were right", name,
                            counted(totals.valid), counted(totals.responses)),
                figures);
}

}  // namespace offload::report
