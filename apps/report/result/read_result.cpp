#include "apps/report/result/read_result.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "apps/report/result/histogram.hpp"
#include "apps/report/result/json_field.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"

namespace offload::report {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;
constexpr std::size_t kMostRuns = 10'000;
constexpr std::size_t kMostIntervals = 1'000'000;
constexpr std::size_t kMostWords = 10'000;
/// The client's longest run, 1000 hours, so that a time fits an integer of microseconds.
constexpr double kLongest = 3.6e6;
/// The year 5138. Later ones would lose the digits behind the point that runs are paired by.
constexpr double kLatest = 1e11;

/// Times that are in order and a histogram that has as many latencies as it says: what merges them
/// and draws them relies on it.
Latency read_latency(const JsonField& field) {
  Latency latency;
  latency.count = field.at("count").count();
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    latency.us[i] = field.at(kStatisticNames[i]).number();
  }
  latency.histogram = field.at("histogram").text();
  const std::uint64_t counted = count_of(latency.histogram, field.at("histogram"));
  if (counted != latency.count) {
    field.at("histogram")
        .refuse(fmt::format("has {} latencies, but count is {}", counted, latency.count));
  }
  return latency;
}

std::optional<Latency> read_optional_latency(const JsonField& field) {
  return field.is_null() ? std::nullopt : std::optional(read_latency(field));
}

IntervalLatency read_interval_latency(const JsonField& field) {
  IntervalLatency latency{field.at("p50").number(), field.at("p99").number(),
                          field.at("max").number(), field.at("histogram").text()};
  count_of(latency.histogram, field.at("histogram"));
  return latency;
}

RunInterval read_interval(const JsonField& field) {
  RunInterval interval;
  interval.start_s = field.at("start_s").number(kLongest);
  interval.length_s = field.at("length_s").number(kLongest);
  interval.operations = field.at("operations").count();
  interval.valid = field.at("valid").count();
  interval.errors = field.at("errors").count();
  interval.service_time_us = read_interval_latency(field.at("service_time_us"));
  const JsonField response = field.at("response_time_us");
  if (!response.is_null()) interval.response_time_us = read_interval_latency(response);
  return interval;
}

std::vector<RunInterval> read_intervals(const JsonField& field) {
  std::vector<RunInterval> intervals;
  for (const JsonField& element : field.elements(kMostIntervals)) {
    intervals.push_back(read_interval(element));
    const std::size_t size = intervals.size();
    if (size > 1 && intervals[size - 1].start_s < intervals[size - 2].start_s) {
      element.at("start_s").refuse("is before that of the previous interval");
    }
  }
  return intervals;
}

void read_load(const JsonField& field, Run& run) {
  run.started_at_unix_s = field.at("started_at_unix_s").number(kLatest);
  if (const JsonField offered = field.at("offered_per_second"); !offered.is_null()) {
    run.offered_per_second = offered.number();
  }
  if (const JsonField arrivals = field.at("arrivals"); !arrivals.is_null()) {
    run.arrivals = arrivals.one_of({"constant", "poisson", "schedule"});
  }
  run.connections = field.at("connections").count();
  run.max_concurrent_messages = field.at("max_concurrent_messages").count();
  run.warmup_seconds = field.at("warmup_seconds").number(kLongest);
  run.duration_seconds = field.at("duration_seconds").number(kLongest);
}

void read_counters(const JsonField& field, Run& run) {
  run.operation_count = field.at("operation_count").count();
  run.valid_responses = field.at("valid_responses").count();
  run.unanswered_requests = field.at("unanswered_requests").count();
  run.tx_bytes = field.at("tx_bytes").count();
  run.rx_bytes = field.at("rx_bytes").count();
  run.tx_data_rate_gib_s = field.at("tx_data_rate_gib_s").number();
  run.rx_data_rate_gib_s = field.at("rx_data_rate_gib_s").number();
  run.io_rate_miops = field.at("io_rate_miops").number();
  for (const auto& [kind, count] : field.at("errors").members(1000)) {
    run.errors[kind] = count.count();
  }
}

Run read_run(const JsonField& field) {
  Run run;
  read_load(field, run);
  read_counters(field, run);
  run.service_time_us = read_latency(field.at("service_time_us"));
  run.response_time_us = read_optional_latency(field.at("response_time_us"));
  run.schedule_lag_us = read_optional_latency(field.at("schedule_lag_us"));
  run.connect_time_us = read_latency(field.at("connect_time_us"));
  run.in_flight_mean = field.at("in_flight").at("mean").number();
  run.in_flight_by_littles_law = field.at("in_flight").at("by_littles_law").number();
  run.verdict_code = field.at("verdict").at("code").one_of(
      {"closed_loop", "kept_up", "server_late", "client_late", "cut_short", "too_few"});
  run.verdict_text = field.at("verdict").at("text").text();
  run.intervals = read_intervals(field.at("intervals"));
  return run;
}

Machine read_machine(const JsonField& field) {
  return {field.at("host").text(), field.at("system").text(), field.at("processor").text(),
          field.at("processors").count()};
}

void read_repeats(const JsonField& field, Result& result) {
  if (field.is_null()) return;
  for (const auto& [name, each] : field.members(100)) {
    result.repeats.emplace_back(
        name, RepeatEstimate{each.at("median").number(), each.at("low").number(),
                             each.at("high").number(), each.at("confidence").number(1)});
  }
}

std::vector<std::string> read_texts(const JsonField& field) {
  std::vector<std::string> texts;
  for (const JsonField& each : field.elements(kMostWords)) texts.push_back(each.text());
  return texts;
}

}  // namespace

Result parse_result(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  const JsonField root(json, file);
  if (root.at("program").text() != "offload-client") {
    root.at("program").refuse("is not offload-client: this is not a result of offload-client");
  }
  if (root.at("format").count() != 1) root.at("format").refuse("is not 1, as this program needs");
  Result result;
  result.file = file;
  result.version = root.at("version").text();
  result.revision = root.at("revision").text();
  result.command_line = read_texts(root.at("command_line"));
  result.machine = read_machine(root.at("machine"));
  for (const auto& [name, value] : root.at("options").members(1000)) {
    result.options.emplace_back(name, value.scalar_json());
  }
  result.status = root.at("status").one_of({"ok", "failed", "interrupted"});
  result.faults = read_texts(root.at("faults"));
  for (const JsonField& run : root.at("runs").elements(kMostRuns)) {
    result.runs.push_back(read_run(run));
  }
  read_repeats(root.at("repeats"), result);
  result.is_search = !root.at("search").is_null();
  return result;
}

Result read_result(const std::string& path) {
  const std::string shown = core::escaped(path);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);  // of a regular file, no pipe
  if (error) {
    throw core::Error(core::ErrorCode::io_failed,
                      fmt::format("'{}' cannot be read: {}", shown, error.message()));
  }
  if (bytes > kMostBytes) {
    throw core::Error(core::ErrorCode::bad_message,
                      fmt::format("'{}' is longer than {} MiB", shown, kMostBytes >> 20));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!file) core::throw_errno("cannot read '" + shown + "'");
  return parse_result(text, path);
}

}  // namespace offload::report
