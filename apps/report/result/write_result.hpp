#pragma once

#include <string>
#include <string_view>

#include "apps/report/result/result.hpp"

namespace offload::report {

/// The beginning of a result, apart from blanks.
inline constexpr std::string_view kResultMarker = R"({"program": "offload-client")";
/// The same of a log.
inline constexpr std::string_view kLogMarker = "#[Histogram log format version";

/// `result` as JSON of format 1.
std::string result_text(const Result& result);

/// Returns the log of HdrHistogram of all intervals of all runs, with the tags service_time and
/// response_time. Throws Error (bad_message) for an invalid histogram.
std::string histogram_log(const Result& result);

}  // namespace offload::report
