#pragma once

#include <cstddef>
#include <vector>

#include "apps/report/page/chart.hpp"
#include "apps/report/page/run_list.hpp"

namespace offload::report {

/// More runs are omitted from the charts, and must be mentioned: their lines would look alike.
inline constexpr std::size_t kMostRunsDrawn = 24;

/// The maximum number of points of a line over time. For a longer run, several intervals are drawn
/// as one, with their histograms merged.
inline constexpr std::size_t kMostPoints = 360;

/// Merges `intervals` into at most `most`. Throws Error (bad_message) for an invalid histogram.
std::vector<RunInterval> condense(const std::vector<RunInterval>& intervals, std::size_t most);

/// Throughput, service time and, where there is any, response time over time; then the percentiles.
std::vector<Chart> make_charts(const std::vector<ShownRun>& runs);

}  // namespace offload::report
