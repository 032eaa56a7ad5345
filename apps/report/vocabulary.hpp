#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "results/result.hpp"

/// The report uses the types of lib/results by their own names.
namespace offload::report {

using results::IntervalLatency;
using results::kStatisticNames;
using results::Latency;
using results::Machine;
using results::RepeatEstimate;
using results::Result;
using results::Run;
using results::RunInterval;
using results::Statistic;

/// Returns how bad a run's verdict is: 0 if the load was what was asked for.
inline std::ptrdiff_t severity_of(const Run& run) {
  constexpr std::array kFromBestToWorst = {"too_few", "server_late", "client_late", "cut_short"};
  const auto found = std::ranges::find(kFromBestToWorst, std::string_view(run.verdict_code));
  return found == kFromBestToWorst.end() ? 0 : found - kFromBestToWorst.begin() + 1;
}

}  // namespace offload::report
