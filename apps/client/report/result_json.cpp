#include "apps/client/report/result_json.hpp"

#include <nlohmann/json.hpp>

#include "apps/client/report/machine.hpp"
#include "metrics/hdr_codec.hpp"
#include "revision.hpp"

namespace offload::client {
namespace {

using Json = nlohmann::ordered_json;

/// The version of the results' format: a reader refuses an unknown one.
constexpr int kFormat = 1;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json seconds_or_null(const std::optional<core::Duration>& duration) {
  return duration ? Json(core::to_seconds(*duration)) : Json();
}

const char* arrivals_of(const Options& options) {
  if (!options.schedule.empty()) return "schedule";
  if (!options.is_open_loop()) return nullptr;
  return options.arrivals == ArrivalKind::poisson ? "poisson" : "constant";
}

Json json_of(const Options& options) {
  const auto* const arrivals = arrivals_of(options);
  const bool has_sizes = options.has_sizes();
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
      {"arrivals", arrivals != nullptr ? Json(arrivals) : Json()},
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
      {"payload", has_sizes ? Json(options.payload_text) : Json("message")},
      {"service", name_of(options.service)},
      {"reconnect_every", options.reconnect_every},
      {"on_error", options.count_errors ? "count" : "stop"},
      {"response_timeout_seconds", core::to_seconds(options.response_timeout)},
      {"deadline_seconds", seconds_or_null(options.deadline)},
  };
}

Json json_of(const metrics::LatencyHistogram& histogram) {
  Json json{{"count", histogram.count()}};
  for (const auto& [name, microseconds] : histogram.summary()) json[name] = microseconds;
  json["histogram"] = metrics::encode_hdr(histogram);
  return json;
}

Json json_of(const LatencyFigures& figures) {
  return {{"p50", figures.p50_us},
          {"p99", figures.p99_us},
          {"max", core::to_micros(figures.max)},
          {"histogram", figures.histogram}};
}

Json intervals_of(const RunResult& result, bool open_loop) {
  Json intervals = Json::array();
  for (const Second& second : result.seconds) {
    intervals.push_back({{"start_s", second.start_s},
                         {"length_s", second.length_s},
                         {"operations", second.answered},
                         {"valid", second.valid},
                         {"errors", second.errors},
                         {"in_flight", second.in_flight},
                         {"service_time_us", json_of(second.service)},
                         {"response_time_us", open_loop ? json_of(second.response) : Json()}});
  }
  return intervals;
}

/// Returns the outcomes of requests that became due in an open loop.
Json requests_of(const RunResult& result, bool open_loop) {
  if (!open_loop) return {};
  const Interval& total = *result.total;
  return {{"due", total.due},
          {"noticed_late", total.noticed_late},
          {"held_back", total.held_back},
          {"never_sent", total.never_sent},
          {"unfinished", result.unfinished()}};
}

/// Returns the outcomes of requests over UDP.
Json datagrams_of(const RunResult& result) {
  if (!result.udp) return {};
  const Interval& total = *result.total;
  return {{"sent", total.sent},
          {"answered", total.answered},
          {"lost", total.lost},
          {"duplicates", total.duplicates},
          {"late", total.late_answers},
          {"wrong", result.wrong()},
          {"sent_again", total.sent_again}};
}

Json json_of(const RunResult& result, const Options& options) {
  const Interval& total = *result.total;
  const bool open_loop = options.is_open_loop();
  const auto* const arrivals = arrivals_of(options);
  Json errors = Json::object();
  total.errors.for_each(
      [&](std::string_view name, std::uint64_t count) { errors[std::string(name)] = count; });
  return {
      {"started_at_unix_s", result.started_at_unix_s},
      {"offered_per_second", number_or_null(result.setting.rate)},
      {"arrivals", arrivals != nullptr ? Json(arrivals) : Json()},
      {"connections", std::uint64_t{options.thread_count} * options.connections},
      {"max_concurrent_messages", result.setting.max_concurrent_messages},
      {"warmup_seconds", core::to_seconds(options.warmup)},
      {"duration_seconds", core::to_seconds(result.duration)},
      {"operation_count", total.answered},
      {"valid_responses", total.valid},
      {"unanswered_requests", result.unanswered},
      {"tx_bytes", total.tx_bytes},
      {"rx_bytes", total.rx_bytes},
      {"tx_data_rate_gib_s", result.tx_gib_per_second()},
      {"rx_data_rate_gib_s", result.rx_gib_per_second()},
      {"io_rate_miops", result.million_operations_per_second()},
      {"errors", errors},
      {"datagrams", datagrams_of(result)},
      {"service_time_us", json_of(total.service)},
      {"response_time_us", open_loop ? json_of(total.response) : Json()},
      {"schedule_lag_us", open_loop ? json_of(total.lag) : Json()},
      {"connect_time_us", json_of(total.connect)},
      {"requests", requests_of(result, open_loop)},
      {"in_flight",
       {{"mean", result.mean_in_flight()}, {"by_littles_law", result.in_flight_by_littles_law()}}},
      {"client_busy", result.busy},
      {"verdict", {{"code", name_of(result.verdict.code)}, {"text", result.verdict.text}}},
      {"intervals", intervals_of(result, open_loop)},
  };
}

Json json_of(const metrics::Estimate& estimate) {
  return {{"median", estimate.middle},
          {"low", estimate.low},
          {"high", estimate.high},
          {"confidence", 0.95}};
}

Json repeats_of(const Campaign& campaign) {
  if (campaign.estimates.empty()) return {};
  Json json = Json::object();
  for (const auto& [name, estimate] : campaign.estimates) json[name] = json_of(estimate);
  return json;
}

Json search_of(const Campaign& campaign, const Options& options) {
  if (!campaign.search) return {};
  const auto& found = *campaign.search;
  Json steps = Json::array();
  for (const auto& step : found.steps) {
    steps.push_back({{"offered_per_second", step.offered_per_second},
                     {"repeat", step.repeat},
                     {"latency_us", step.measured.latency_us},
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
    stages[stage.name] = {
        {"count", stage.count}, {"p50_us", stage.p50_us}, {"p99_us", stage.p99_us}};
  }
  return {{"requests", share.requests}, {"responses", share.responses}, {"errors", share.errors},
          {"stages", stages},           {"busy", share.busy},           {"polling", share.polling},
          {"asleep", share.asleep}};
}

std::string status_of(const Campaign& campaign, const std::string& failure) {
  if (!failure.empty() || campaign.has_failed()) return "failed";
  return campaign.interrupted() ? "interrupted" : "ok";
}

}  // namespace

Json make_json(const Options& options, const Campaign& campaign,
               const std::vector<std::string>& command_line, const std::string& failure) {
  const ThisMachine machine = ThisMachine::here();
  Json faults = Json::array();
  Json runs = Json::array();
  for (const RunResult& run : campaign.runs) {
    for (const auto& fault : run.faults) faults.push_back(fault);
    runs.push_back(json_of(run, options));
  }
  if (!failure.empty()) faults.push_back(failure);
  return {
      {"program", "offload-client"},
      {"format", kFormat},
      {"version", OFFLOAD_VERSION},
      {"revision", OFFLOAD_REVISION},
      {"command_line", command_line},
      {"machine",
       {{"host", machine.host},
        {"system", machine.system},
        {"processor", machine.processor},
        {"processors", machine.processors}}},
      {"options", json_of(options)},
      {"status", status_of(campaign, failure)},
      {"faults", faults},
      {"runs", runs},
      {"repeats", repeats_of(campaign)},
      {"search", search_of(campaign, options)},
      {"server", server_of(campaign)},
  };
}

}  // namespace offload::client
