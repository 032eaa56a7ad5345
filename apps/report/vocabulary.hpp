#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "results/result.hpp"

/// The report uses the types of lib/results by their own names.
namespace offload::report {

using results::IntervalLatency;
using results::kFewestResponses;
using results::KindFigures;
using results::kStatisticNames;
using results::Latency;
using results::Machine;
using results::RepeatEstimate;
using results::Result;
using results::Run;
using results::RunInterval;
using results::Statistic;

inline bool has_few_responses(const Run& run) {
  return run.service_time_us.count < kFewestResponses;
}

/// Returns whether far fewer responses came than an open loop offered requests, whatever its
/// verdict says. Poisson arrivals differ from the rate by a few square roots of their number.
inline bool falls_short(const Run& run) {
  const double due = run.offered_per_second.value_or(0) * run.duration_seconds;
  const double achieved = run.io_rate_miops * 1e6 * run.duration_seconds;
  return achieved < 0.9 * due - 5 * std::sqrt(due);
}

/// Returns the verdict's code; "server_late" if the figures contradict that the server kept up.
inline std::string verdict_code_of(const Run& run) {
  return run.verdict_code == "kept_up" && falls_short(run) ? "server_late" : run.verdict_code;
}
inline std::string verdict_text_of(const Run& run) {
  if (verdict_code_of(run) == run.verdict_code) return run.verdict_text;
  return fmt::format("offered {:.1f}/s, achieved {:.1f}/s: the server was late",
                     run.offered_per_second.value_or(0), run.io_rate_miops * 1e6);
}

/// Returns how bad a run's verdict is: 0 if the load was what was asked for.
inline std::ptrdiff_t severity_of(const Run& run) {
  constexpr std::array kFromBestToWorst = {"too_few", "server_late", "client_late", "cut_short"};
  const auto found = std::ranges::find(kFromBestToWorst, verdict_code_of(run));
  return found == kFromBestToWorst.end() ? 0 : found - kFromBestToWorst.begin() + 1;
}

}  // namespace offload::report
