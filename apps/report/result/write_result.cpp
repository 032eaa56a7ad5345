#include "apps/report/result/write_result.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "metrics/hdr_codec.hpp"
#include "metrics/hdr_log.hpp"

namespace offload::report {
namespace {

using ordered = nlohmann::ordered_json;

ordered json_of(const Latency& latency) {
  ordered object = {{"count", latency.count}};
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    object[kStatisticNames[i]] = latency.us[i];
  }
  object["histogram"] = latency.histogram;
  return object;
}

ordered json_of(const IntervalLatency& latency) {
  return {{"p50", latency.p50},
          {"p99", latency.p99},
          {"max", latency.max},
          {"histogram", latency.histogram}};
}

template <class Value>
ordered json_of(const std::optional<Value>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
    return *value;
  } else {
    return json_of(*value);
  }
}

ordered json_of(const RunInterval& interval) {
  return {{"start_s", interval.start_s},
          {"length_s", interval.length_s},
          {"operations", interval.operations},
          {"valid", interval.valid},
          {"errors", interval.errors},
          {"service_time_us", json_of(interval.service_time_us)},
          {"response_time_us", json_of(interval.response_time_us)}};
}

ordered json_of(const Run& run) {
  ordered intervals = ordered::array();
  for (const RunInterval& interval : run.intervals) intervals.push_back(json_of(interval));
  ordered errors = ordered::object();
  for (const auto& [kind, count] : run.errors) errors[kind] = count;
  return {{"started_at_unix_s", run.started_at_unix_s},
          {"offered_per_second", json_of(run.offered_per_second)},
          {"arrivals", json_of(run.arrivals)},
          {"connections", run.connections},
          {"max_concurrent_messages", run.max_concurrent_messages},
          {"warmup_seconds", run.warmup_seconds},
          {"duration_seconds", run.duration_seconds},
          {"operation_count", run.operation_count},
          {"valid_responses", run.valid_responses},
          {"unanswered_requests", run.unanswered_requests},
          {"tx_bytes", run.tx_bytes},
          {"rx_bytes", run.rx_bytes},
          {"tx_data_rate_gib_s", run.tx_data_rate_gib_s},
          {"rx_data_rate_gib_s", run.rx_data_rate_gib_s},
          {"io_rate_miops", run.io_rate_miops},
          {"errors", errors},
          {"service_time_us", json_of(run.service_time_us)},
          {"response_time_us", json_of(run.response_time_us)},
          {"schedule_lag_us", json_of(run.schedule_lag_us)},
          {"connect_time_us", json_of(run.connect_time_us)},
          {"in_flight",
           {{"mean", run.in_flight_mean}, {"by_littles_law", run.in_flight_by_littles_law}}},
          {"verdict", {{"code", run.verdict_code}, {"text", run.verdict_text}}},
          {"intervals", intervals}};
}

ordered repeats_of(const Result& result) {
  if (result.repeats.empty()) return nullptr;
  ordered repeats = ordered::object();
  for (const auto& [name, estimate] : result.repeats) {
    repeats[name] = {{"median", estimate.median},
                     {"low", estimate.low},
                     {"high", estimate.high},
                     {"confidence", estimate.confidence}};
  }
  return repeats;
}

/// A value that was text before: JSON, or what a merge made of several.
ordered value_of(const std::string& text) {
  ordered value = ordered::parse(text, nullptr, false);
  return value.is_discarded() ? ordered(text) : value;
}

void add_intervals(const Run& run, double log_start, std::string& log) {
  const auto add = [&](const char* tag, const RunInterval& interval, const auto& latency) {
    const double start = run.started_at_unix_s + interval.start_s - log_start;
    log += metrics::hdr_log_line(tag, start, interval.length_s,
                                 metrics::decode_hdr(latency.histogram));
  };
  for (const RunInterval& interval : run.intervals) {
    add("service_time", interval, interval.service_time_us);
    if (interval.response_time_us) add("response_time", interval, *interval.response_time_us);
  }
}

}  // namespace

std::string result_text(const Result& result) {
  ordered runs = ordered::array();
  for (const Run& run : result.runs) runs.push_back(json_of(run));
  ordered options = ordered::object();
  for (const auto& [name, value] : result.options) options[name] = value_of(value);
  const ordered whole = {{"program", "offload-client"},
                         {"format", 1},
                         {"version", result.version},
                         {"revision", result.revision},
                         {"command_line", result.command_line},
                         {"machine",
                          {{"host", result.machine.host},
                           {"system", result.machine.system},
                           {"processor", result.machine.processor},
                           {"processors", result.machine.processors}}},
                         {"options", options},
                         {"status", result.status},
                         {"faults", result.faults},
                         {"runs", runs},
                         {"repeats", repeats_of(result)},
                         {"search", nullptr}};
  return whole.dump(2, ' ', false, ordered::error_handler_t::replace) + "\n";
}

std::string histogram_log(const Result& result) {
  double start = 0;
  if (!result.runs.empty()) {
    const auto first = std::min_element(result.runs.begin(), result.runs.end(),
                                        [](const Run& left, const Run& right) {
                                          return left.started_at_unix_s < right.started_at_unix_s;
                                        });
    start = first->started_at_unix_s;
  }
  std::string log = metrics::hdr_log_header(start);
  for (const Run& run : result.runs) add_intervals(run, start, log);
  return log;
}

}  // namespace offload::report
