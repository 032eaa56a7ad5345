#pragma once

#include <vector>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// Returns the intervals of runs that are merged into `merged`, which has its times already: one
/// for each second of wall clock from the start of its measured part. An interval belongs to the
/// second that contains its middle; one of several seconds joins these, and the others' intervals
/// there, into one. Throws Error (bad_message) for an invalid histogram.
std::vector<RunInterval> merge_intervals(const std::vector<const Run*>& runs, const Run& merged);

}  // namespace offload::report
