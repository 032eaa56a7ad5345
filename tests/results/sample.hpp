#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "metrics/hdr_codec.hpp"
#include "results/result.hpp"

/// Sample results, small and consistent.
namespace offload::results {

inline std::string encoded(std::initializer_list<int> microseconds) {
  const auto histogram = std::make_unique<metrics::LatencyHistogram>();
  for (const int us : microseconds) histogram->record(std::chrono::microseconds(us));
  return metrics::encode_hdr(*histogram);
}

inline Latency latency_of(std::initializer_list<int> microseconds) {
  const auto histogram = std::make_unique<metrics::LatencyHistogram>();
  for (const int us : microseconds) histogram->record(std::chrono::microseconds(us));
  return Latency::of(*histogram);
}

inline RunInterval interval_of(double start_s, double length_s, std::initializer_list<int> us) {
  RunInterval interval;
  interval.start_s = start_s;
  interval.length_s = length_s;
  interval.operations = interval.valid = us.size();
  const Latency latency = latency_of(us);
  interval.service_time_us = {latency.at(Statistic::p50), latency.at(Statistic::p99),
                              latency.at(Statistic::max), latency.histogram, latency.count};
  return interval;
}

/// Returns a closed loop of two seconds with four requests, begun `begun_s` after a common moment.
inline Run sample_run(double begun_s = 0) {
  Run run;
  run.started_at_unix_s = 1'763'879'556 + begun_s;
  run.connections = 2;
  run.max_concurrent_messages = 16;
  run.duration_seconds = 2;
  run.operation_count = run.valid_responses = 4;
  run.tx_bytes = run.rx_bytes = 1U << 30;
  run.tx_data_rate_gib_s = run.rx_data_rate_gib_s = 0.5;
  run.io_rate_miops = 2e-6;
  run.service_time_us = latency_of({100, 200, 300, 400});
  run.connect_time_us = latency_of({50, 60});
  run.in_flight_mean = run.in_flight_by_littles_law = 1.5;
  run.verdict_code = "closed_loop";
  run.verdict_text = "the server set the rate";
  run.intervals = {interval_of(0, 1, {100, 200}), interval_of(1, 1, {300, 400})};
  return run;
}

inline Run open_loop_run(double begun_s = 0) {
  Run run = sample_run(begun_s);
  run.offered_per_second = 2;
  run.arrivals = "constant";
  run.response_time_us = latency_of({110, 210, 310, 410});
  run.schedule_lag_us = latency_of({1, 2, 3, 4});
  run.verdict_code = "kept_up";
  run.verdict_text = "the server kept up";
  for (RunInterval& interval : run.intervals) interval.response_time_us = interval.service_time_us;
  return run;
}

inline KindFigures kind_of(const std::string& name, std::uint64_t port,
                           std::initializer_list<int> us) {
  KindFigures kind;
  kind.name = name;
  kind.port = port;
  kind.share = 0.5;
  kind.connections = 1;
  kind.operation_count = kind.valid_responses = us.size();
  kind.valid_per_second = static_cast<double>(us.size()) / 2;
  kind.service_time_us = latency_of(us);
  return kind;
}

/// Returns sample_run() with the kinds "find", three of its requests, and "hash".
inline Run run_of_kinds(double begun_s = 0) {
  Run run = sample_run(begun_s);
  run.kinds = {kind_of("find", 12345, {100, 300, 400}), kind_of("hash", 12346, {200})};
  return run;
}

inline Result sample_result(std::vector<Run> runs, const std::string& host = "host-1") {
  Result result;
  result.file = host + ".json";
  result.version = "0.1.0";
  result.revision = "8ce866c";
  result.command_line = {"offload-client", "-s", "10.0.0.7", "-m", "two words"};
  result.machine = {host, "Linux 6.1.0 x86_64", "a processor", 8};
  result.options = {
      {"duration_seconds", "2.0"}, {"iteration_count", "null"}, {"service", "\"reverse\""}};
  result.status = "ok";
  result.runs = std::move(runs);
  return result;
}

}  // namespace offload::results
