#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <iterator>
#include <string>

#include "apps/client/run/campaign.hpp"
#include "metrics/hdr_log.hpp"

namespace offload::client {

/// Three columns; empty where there are too few latencies.
inline std::string figures_of(const results::IntervalLatency& latency) {
  const auto text = [&](results::Statistic statistic, double us) {
    return latency.has(statistic) ? fmt::format("{:.3f}", us) : std::string();
  };
  return fmt::format("{},{},{}", text(results::Statistic::p50, latency.p50),
                     text(results::Statistic::p99, latency.p99),
                     text(results::Statistic::max, latency.max));
}

/// The first bytes of the files below, which identify them.
inline constexpr const char* kCsvMarker = "run,start_s,length_s";
inline constexpr const char* kHistogramLogMarker = "#[Histogram log format version";

/// A line a second of every run, with a legend: times in microseconds, a run's own number first.
inline std::string make_csv(const Campaign& campaign) {
  std::string text(kCsvMarker);
  text +=
      ",operations,valid,errors,in_flight,service_p50_us,service_p99_us,"
      "service_max_us,response_p50_us,response_p99_us,response_max_us\n";
  for (std::size_t run = 0; run < campaign.runs.size(); ++run) {
    for (const auto& second : campaign.runs[run].seconds) {
      fmt::format_to(std::back_inserter(text), "{},{:.3f},{:.3f},{},{},{},{:.3f},{},{}\n", run,
                     second.start_s, second.length_s, second.operations, second.valid,
                     second.errors, *second.in_flight, figures_of(second.service_time_us),
                     figures_of(*second.response_time_us));
    }
  }
  return text;
}

/// HdrHistogram's log: an interval a second with the tag service_time and, in an open loop, one
/// with the tag response_time. The last of them is there without a tag too, for tools that read
/// only such lines. Times are nanoseconds; starts count from the first run's.
inline std::string make_histogram_log(const Campaign& campaign) {
  const double start = campaign.runs.empty() ? 0 : campaign.runs.front().started_at_unix_s;
  std::string text = metrics::hdr_log_header(start);
  for (const RunResult& run : campaign.runs) {
    for (const auto& second : run.seconds) {
      const double begin = run.started_at_unix_s - start + second.start_s;
      const auto add = [&](const char* tag, const results::IntervalLatency& latency) {
        if (latency.count == 0) return;
        const auto max = std::chrono::nanoseconds(std::llround(latency.max * 1000));
        text += metrics::hdr_log_line(tag, begin, second.length_s, max, latency.histogram);
      };
      const bool is_open = second.response_time_us->count != 0;
      add("service_time", second.service_time_us);
      if (is_open) add("response_time", *second.response_time_us);
      add("", is_open ? *second.response_time_us : second.service_time_us);
    }
  }
  return text;
}

}  // namespace offload::client
