#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/report/histograms.hpp"
#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// An interval up to this length is one of a second, whose end a busy client noticed late.
inline constexpr double kAboutASecond = 1.5;

/// An interval of one of the runs, and the whole seconds that it has since the measured start.
struct Placed {
  const RunInterval* interval;
  double first;  ///< second, included
  double last;   ///< excluded
  double end_s;  ///< its exact end
};

inline Placed place(const RunInterval& interval, double start_s) {
  const double end_s = start_s + interval.length_s;
  if (interval.length_s > kAboutASecond) {
    const double first = std::round(start_s);
    return {&interval, first, std::max(first + 1, std::round(end_s)), end_s};
  }
  const double second = std::floor(start_s + interval.length_s / 2);
  return {&interval, second, second + 1, end_s};
}

/// In the order of their seconds.
inline std::vector<Placed> place_all(const std::vector<const Run*>& runs, const Run& merged) {
  std::vector<Placed> placed;
  for (const Run* run : runs) {
    const double since = run->started_at_unix_s - merged.measured_from();
    for (const RunInterval& interval : run->intervals) {
      placed.push_back(place(interval, since + interval.start_s));
    }
  }
  std::ranges::stable_sort(placed, {}, &Placed::first);
  return placed;
}

using Group = std::vector<Placed>;

inline RunInterval merge_group(const Group& group, double warmup_s) {
  HistogramSum service;
  HistogramSum response;
  bool any_response = false;
  RunInterval interval;
  double last = 0;
  double end_s = 0;
  for (const Placed& placed : group) {
    const RunInterval& each = *placed.interval;
    interval.operations += each.operations;
    interval.valid += each.valid;
    interval.errors += each.errors;
    service.add(each.service_time_us);
    any_response |= each.response_time_us.has_value();
    if (each.response_time_us) response.add(*each.response_time_us);
    last = std::max(last, placed.last);
    end_s = std::max(end_s, placed.end_s);
  }
  const double first = group.front().first;
  interval.start_s = std::max(0.0, warmup_s + first);
  // The last one of a run may be shorter than a second.
  interval.length_s = end_s > first ? std::min(last, end_s) - first : last - first;
  interval.service_time_us = service.interval();
  if (any_response) interval.response_time_us = response.interval();
  return interval;
}

/// Returns the intervals of runs that are merged into `merged`, which has its times already: one
/// for each second of wall clock from the start of its measured part. An interval belongs to the
/// second that contains its middle; one of several seconds joins these, and the others' intervals
/// there, into one. Throws Error (bad_message) for an invalid histogram.
inline std::vector<RunInterval> merge_intervals(const std::vector<const Run*>& runs,
                                                const Run& merged) {
  std::vector<RunInterval> intervals;
  Group group;
  double group_last = 0;
  for (const Placed& placed : place_all(runs, merged)) {
    if (!group.empty() && placed.first >= group_last) {
      intervals.push_back(merge_group(group, merged.warmup_seconds));
      group.clear();
    }
    group_last = group.empty() ? placed.last : std::max(group_last, placed.last);
    group.push_back(placed);
  }
  if (!group.empty()) intervals.push_back(merge_group(group, merged.warmup_seconds));
  return intervals;
}

}  // namespace offload::report
