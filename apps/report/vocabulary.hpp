#pragma once

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

}  // namespace offload::report
