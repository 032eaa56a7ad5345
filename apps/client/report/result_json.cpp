#include "apps/client/report/result_json.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "results/write_result.hpp"
#include "revision.hpp"

namespace offload::client {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json seconds_or_null(const std::optional<core::Duration>& duration) {
  return duration ? Json(core::to_seconds(*duration)) : Json();
}

std::optional<std::string> arrivals_of(const Options& options) {
  if (!options.schedule.empty()) return "schedule";
  if (!options.is_open_loop()) return std::nullopt;
  return options.arrivals == ArrivalKind::poisson ? "poisson" : "constant";
}

Json json_of(const Options& options) {
  const bool has_sizes = options.has_sizes();
  Json kinds = Json::array();
  for (const RequestKind& kind : options.kinds) kinds.push_back(kind.text);
  const bool has_count = !options.duration && options.schedule.empty();
  return {
      {"server_ip_address", options.server_address},
      {"server_ip_port", options.server_port},
      {"tls", options.tls},
      {"udp", options.udp},
      {"thread_count", options.thread_count},
      {"connections", options.connections},
      {"max_concurrent_messages", options.max_concurrent_messages},
      {"rate", number_or_null(options.rate)},
      {"rate_steps", text_or_null(options.rate_steps_text)},
      {"burst", options.burst},
      {"think_seconds", core::to_seconds(options.think)},
      {"arrivals", text_or_null(arrivals_of(options).value_or(""))},
      {"schedule", text_or_null(options.schedule)},
      {"lag_tolerance_seconds", core::to_seconds(options.lag_tolerance)},
      {"seed", options.seed},
      {"iteration_count", has_count ? Json(options.iteration_count) : Json()},
      {"duration_seconds", seconds_or_null(options.duration)},
      {"warmup_seconds", core::to_seconds(options.warmup)},
      {"repeat", options.repeat},
      {"sizes", has_sizes ? text_or_null(options.sizes_text) : Json()},
      {"sizes_file", text_or_null(options.sizes_file)},
      {"message_length", has_sizes ? Json() : Json(options.message.size())},
      {"requests_file", text_or_null(options.requests_file)},
      {"in_order", options.in_order},
      {"payload", !has_sizes                      ? Json("message")
                  : options.requests_file.empty() ? Json(options.payload_text)
                                                  : Json("file of requests")},
      {"service", options.uses_service() ? Json(name_of(options.service)) : Json()},
      {"verify", options.expected_response ? "text" : options.verification.text},
      {"kinds", kinds},
      {"reconnect_every", options.reconnect_every},
      {"on_error", options.count_errors ? "count" : "stop"},
      {"response_timeout_seconds", core::to_seconds(options.response_timeout)},
      {"deadline_seconds", seconds_or_null(options.deadline)},
  };
}

std::vector<results::KindFigures> kinds_of(const RunResult& result, bool open_loop) {
  std::vector<results::KindFigures> kinds;
  for (const KindResult& kind : result.kinds) {
    const Interval& total = *kind.total;
    results::KindFigures& figures = kinds.emplace_back();
    figures.name = kind.name;
    figures.port = kind.port;
    figures.share = kind.share;
    figures.connections = kind.connections;
    figures.offered_per_second = kind.rate;
    figures.valid_per_second =
        per_second(static_cast<double>(total.valid - total.valid_after_end), result.duration);
    figures.operation_count = total.answered;
    figures.valid_responses = total.valid;
    total.errors.for_each([&](std::string_view name, std::uint64_t count) {
      figures.errors.emplace_back(name, count);
    });
    figures.service_time_us = results::Latency::of(total.service);
    if (open_loop) figures.response_time_us = results::Latency::of(total.response);
  }
  return kinds;
}

results::Run run_of(const RunResult& result, const Options& options) {
  const Interval& total = *result.total;
  const bool open_loop = options.is_open_loop();
  results::Run run;
  run.started_at_unix_s = result.started_at_unix_s;
  run.offered_per_second = result.setting.rate;
  run.arrivals = arrivals_of(options);
  run.connections = std::uint64_t{options.thread_count} * options.connections;
  run.max_concurrent_messages = result.setting.max_concurrent_messages;
  run.warmup_seconds = core::to_seconds(options.warmup);
  run.duration_seconds = core::to_seconds(result.duration);
  run.operation_count = total.answered;
  run.valid_responses = total.valid;
  run.unanswered_requests = result.unanswered;
  run.tx_bytes = total.tx_bytes;
  run.rx_bytes = total.rx_bytes;
  run.tx_data_rate_gib_s = result.tx_gib_per_second();
  run.rx_data_rate_gib_s = result.rx_gib_per_second();
  run.tx_wire_rate_gib_s = result.tx_wire_gib_per_second();
  run.rx_wire_rate_gib_s = result.rx_wire_gib_per_second();
  run.io_rate_miops = result.million_operations_per_second();
  total.errors.for_each(
      [&](std::string_view name, std::uint64_t count) { run.errors.emplace_back(name, count); });
  run.datagrams.emplace();
  if (result.udp) {
    run.datagrams = {{"sent", total.sent},
                     {"answered", total.answered},
                     {"lost", total.lost},
                     {"duplicates", total.duplicates},
                     {"late", total.late_answers},
                     {"wrong", result.wrong()},
                     {"sent_again", total.sent_again}};
  }
  run.service_time_us = results::Latency::of(total.service);
  run.connect_time_us = results::Latency::of(total.connect);
  run.requests.emplace();
  if (open_loop) {
    run.response_time_us = results::Latency::of(total.response);
    run.schedule_lag_us = results::Latency::of(total.lag);
    run.requests = {{"due", total.due},
                    {"noticed_late", total.noticed_late},
                    {"held_back", total.held_back},
                    {"never_sent", total.never_sent},
                    {"unfinished", result.unfinished()}};
  }
  run.in_flight_mean = result.mean_in_flight();
  run.in_flight_by_littles_law = result.in_flight_by_littles_law();
  run.client_busy = result.busy;
  run.kinds = kinds_of(result, open_loop);
  run.verdict_code = name_of(result.verdict.code);
  run.verdict_text = result.verdict.text;
  run.intervals = result.seconds;
  for (auto& interval : run.intervals) {
    if (!open_loop) interval.response_time_us.reset();
  }
  return run;
}

Json search_of(const Campaign& campaign, const Options& options) {
  if (!campaign.search) return {};
  const auto& found = *campaign.search;
  Json steps = Json::array();
  for (const auto& step : found.steps) {
    steps.push_back({{"offered_per_second", step.offered_per_second},
                     {"repeat", step.repeat},
                     {"latency_us", step.measured.held ? Json(step.measured.latency_us) : Json()},
                     {"kept_up", step.measured.kept_up},
                     {"trusted", step.measured.trusted},
                     {"meets", step.meets}});
  }
  return {{"percentile", options.search->percentile},
          {"bound_us", core::to_micros(options.search->bound)},
          {"rate", number_or_null(found.rate)},
          {"bracket", {number_or_null(found.low), number_or_null(found.high)}},
          {"reason", text_or_null(found.reason)},
          {"steps", steps}};
}

Json server_of(const Campaign& campaign) {
  if (!campaign.server) return {};
  const ServerShare& share = *campaign.server;
  Json stages = Json::object();
  for (const auto& stage : share.stages) {
    stages[stage.name] = {{"count", stage.count},
                          {"p50_us", number_or_null(stage.p50_us)},
                          {"p99_us", number_or_null(stage.p99_us)}};
  }
  return {{"requests", share.requests}, {"responses", share.responses}, {"errors", share.errors},
          {"stages", stages},           {"busy", share.busy},           {"polling", share.polling},
          {"asleep", share.asleep}};
}

/// From /proc/cpuinfo (proc(5)); Arm's has no such line.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

results::Machine this_machine() {
  results::Machine machine;
  utsname system{};
  if (::uname(&system) == 0) {
    machine.host = system.nodename;
    machine.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  machine.processor = processor_model();
  machine.processors = std::thread::hardware_concurrency();
  return machine;
}

std::string status_of(const Campaign& campaign, const std::string& failure) {
  if (!failure.empty() || campaign.has_failed()) return "failed";
  return campaign.interrupted() ? "interrupted" : "ok";
}

}  // namespace

Json make_json(const Options& options, const Campaign& campaign,
               const std::vector<std::string>& command_line, const std::string& failure) {
  results::Result result;
  result.version = OFFLOAD_VERSION;
  result.revision = OFFLOAD_REVISION;
  result.command_line = command_line;
  result.machine = this_machine();
  result.status = status_of(campaign, failure);
  for (const RunResult& run : campaign.runs) {
    result.faults.insert(result.faults.end(), run.faults.begin(), run.faults.end());
    result.runs.push_back(run_of(run, options));
  }
  if (!failure.empty()) result.faults.push_back(failure);
  for (const auto& [name, estimate] : campaign.estimates) {
    result.repeats.emplace_back(
        name, results::RepeatEstimate{estimate.middle, estimate.low, estimate.high});
  }
  Json json = results::result_json(result);
  json["options"] = json_of(options);
  json["search"] = search_of(campaign, options);
  json["server"] = server_of(campaign);
  return json;
}

}  // namespace offload::client
