#pragma once

#include <cstddef>
#include <vector>

#include "apps/report/page/chart.hpp"
#include "apps/report/page/run_list.hpp"

namespace offload::report {

/// More runs are left out of the charts, and have to be told of: nobody can tell their lines apart.
inline constexpr std::size_t kMostRunsDrawn = 24;

/// Points of a line over time. Of a longer run several intervals are drawn as one, with their
/// histograms merged.
inline constexpr std::size_t kMostPoints = 360;

/// `intervals` as at most `most`. Throws Error (bad_message) for a histogram that is none.
std::vector<Interval> condense(const std::vector<Interval>& intervals, std::size_t most);

/// Throughput, service time and, where there is any, response time over time; then the percentiles.
std::vector<Chart> make_charts(const std::vector<ShownRun>& runs);

}  // namespace offload::report
