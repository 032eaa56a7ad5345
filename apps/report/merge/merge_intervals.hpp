#pragma once

#include <vector>

#include "apps/report/result/result.hpp"

namespace offload::report {

/// The intervals of runs that are merged into `merged`, which has its times already: one a second
/// of wall clock from the start of its measured part. An interval belongs to the second that its
/// middle lies in; one of several seconds joins these, and what others have there, into one.
/// Throws Error (bad_message) for a histogram that is none.
std::vector<Interval> merge_intervals(const std::vector<const Run*>& runs, const Run& merged);

}  // namespace offload::report
