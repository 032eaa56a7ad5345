#pragma once

#include <string>
#include <vector>

#include "apps/report/page/run_list.hpp"

namespace offload::report {

/// The numbers of all runs as HTML tables: throughput, service time, response time where there is
/// any, connect time and schedule lag. Each cell of a number has the exact one in data-value, under
/// the name that format 1 has for it in data-figure, and its run's name in data-run.
std::string throughput_table(const std::vector<ShownRun>& runs);
std::string latency_tables(const std::vector<ShownRun>& runs);
/// Medians of repeats with their intervals; empty if no result has any.
std::string repeats_table(const std::vector<Result>& results);

}  // namespace offload::report
