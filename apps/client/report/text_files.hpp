#pragma once

#include <string>

#include "apps/client/run/campaign.hpp"

namespace offload::client {

/// The first bytes of the files below, which identify them.
inline constexpr const char* kCsvMarker = "run,start_s,length_s";
inline constexpr const char* kHistogramLogMarker = "#[Histogram log format version";

/// A line a second of every run, with a legend: times in microseconds, a run's own number first.
std::string make_csv(const Campaign& campaign);

/// HdrHistogram's log: an interval a second with the tag service_time and, in an open loop, one
/// with the tag response_time. Times are nanoseconds; starts count from the first run's.
std::string make_histogram_log(const Campaign& campaign);

}  // namespace offload::client
