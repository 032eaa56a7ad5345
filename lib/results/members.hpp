#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>

#include "results/result.hpp"

/// @file
/// The description of format 1, from which results are both read and written. describe() shows a
/// visitor each member of an object, in the order of the format:
///   visit(name, member, limit)      a member; the limit is the reader's
///   visit.statistic(name, us, has)  null if there are too few latencies for it
///   visit.group(name, members)      an object in the file whose members are the outer object's
///   visit.extra(name, optional)     written if it is there, never read
///   visit.presence(name, is_there)  read as whether it is not null, written as null
namespace offload::results {

inline constexpr const char* kProgram = "offload-client";
inline constexpr std::uint64_t kFormat = 1;

/// The limit of a list that is null if it is empty.
struct EmptyIsNull {
  std::size_t most;
};
using Names = std::initializer_list<const char*>;
inline constexpr Names kArrivals = {"constant", "poisson", "schedule"};
inline constexpr Names kVerdicts = {"closed_loop", "kept_up",   "server_late",
                                    "client_late", "cut_short", "too_few"};
/// The verdicts of an answer of kAnsweringProgram; the first three are good.
inline constexpr const char* kAnsweringProgram = "offload-bench";
inline constexpr Names kAnswers = {"answered",    "equal",  "faster",     "slower",
                                   "cannot_tell", "failed", "interrupted"};
inline constexpr Names kStatuses = {"ok", "failed", "interrupted"};
inline constexpr std::size_t kMostRuns = 10'000;
inline constexpr std::size_t kMostIntervals = 1'000'000;
inline constexpr std::size_t kMostWords = 10'000;
inline constexpr std::size_t kMostMembers = 1000;
/// The client's longest run, 1000 hours, so that a time fits an integer of microseconds.
inline constexpr double kLongest = 3.6e6;
/// The year 5138. Later ones would lose the digits behind the point that runs are paired by.
inline constexpr double kLatest = 1e11;

/// `Object`, or a constant one.
template <class Value, class Object>
concept Of = std::same_as<std::remove_const_t<Value>, Object>;

void describe(auto visit, Of<Latency> auto& latency) {
  visit("count", latency.count);
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    visit.statistic(kStatisticNames[i], latency.us[i], latency.has(static_cast<Statistic>(i)));
  }
  visit("histogram", latency.histogram);
}

void describe(auto visit, Of<IntervalLatency> auto& latency) {
  visit.statistic("p50", latency.p50, latency.has(Statistic::p50));
  visit.statistic("p99", latency.p99, latency.has(Statistic::p99));
  visit.statistic("max", latency.max, latency.has(Statistic::max));
  visit("histogram", latency.histogram);
}

void describe(auto visit, Of<RunInterval> auto& interval) {
  visit("start_s", interval.start_s, kLongest);
  visit("length_s", interval.length_s, kLongest);
  visit("operations", interval.operations);
  visit("valid", interval.valid);
  visit("errors", interval.errors);
  visit.extra("in_flight", interval.in_flight);
  visit("service_time_us", interval.service_time_us);
  visit("response_time_us", interval.response_time_us);
}

void describe(auto visit, Of<KindFigures> auto& kind) {
  visit("name", kind.name);
  visit("server_ip_port", kind.port);
  visit("share", kind.share, 1.0 + 1e-9);
  visit("connections", kind.connections);
  visit("offered_per_second", kind.offered_per_second);
  visit("valid_per_second", kind.valid_per_second);
  visit("operation_count", kind.operation_count);
  visit("valid_responses", kind.valid_responses);
  visit("errors", kind.errors, kMostMembers);
  visit("service_time_us", kind.service_time_us);
  visit("response_time_us", kind.response_time_us);
}

void describe(auto visit, Of<Run> auto& run) {
  visit("started_at_unix_s", run.started_at_unix_s, kLatest);
  visit("offered_per_second", run.offered_per_second);
  visit("arrivals", run.arrivals, kArrivals);
  visit("connections", run.connections);
  visit("max_concurrent_messages", run.max_concurrent_messages);
  visit("warmup_seconds", run.warmup_seconds, kLongest);
  visit("duration_seconds", run.duration_seconds, kLongest);
  visit("operation_count", run.operation_count);
  visit("valid_responses", run.valid_responses);
  visit("unanswered_requests", run.unanswered_requests);
  visit("tx_bytes", run.tx_bytes);
  visit("rx_bytes", run.rx_bytes);
  visit("tx_data_rate_gib_s", run.tx_data_rate_gib_s);
  visit("rx_data_rate_gib_s", run.rx_data_rate_gib_s);
  visit.extra("tx_wire_rate_gib_s", run.tx_wire_rate_gib_s);
  visit.extra("rx_wire_rate_gib_s", run.rx_wire_rate_gib_s);
  visit("io_rate_miops", run.io_rate_miops);
  visit("errors", run.errors, kMostMembers);
  visit.extra("datagrams", run.datagrams);
  visit("service_time_us", run.service_time_us);
  visit("response_time_us", run.response_time_us);
  visit("schedule_lag_us", run.schedule_lag_us);
  visit("connect_time_us", run.connect_time_us);
  visit.extra("requests", run.requests);
  visit.group("in_flight", [&](auto inner) {
    inner("mean", run.in_flight_mean);
    inner("by_littles_law", run.in_flight_by_littles_law);
  });
  visit.extra("client_busy", run.client_busy);
  visit("kinds", run.kinds, kMostMembers);
  visit.group("verdict", [&](auto inner) {
    inner("code", run.verdict_code, kVerdicts);
    inner("text", run.verdict_text);
  });
  visit("intervals", run.intervals, kMostIntervals);
}

void describe(auto visit, Of<Machine> auto& machine) {
  visit("host", machine.host);
  visit("system", machine.system);
  visit("processor", machine.processor);
  visit("processors", machine.processors);
}

void describe(auto visit, Of<RepeatEstimate> auto& estimate) {
  visit("median", estimate.median);
  visit("low", estimate.low);
  visit("high", estimate.high);
  visit("confidence", estimate.confidence, 1.0);
}

void describe(auto visit, Of<Result> auto& result) {
  visit("version", result.version);
  visit("revision", result.revision);
  visit("command_line", result.command_line, kMostWords);
  visit("machine", result.machine);
  visit("options", result.options, kMostMembers);
  visit("status", result.status, kStatuses);
  visit("faults", result.faults, kMostWords);
  visit("runs", result.runs, kMostRuns);
  visit("repeats", result.repeats, EmptyIsNull{100});
  visit.presence("search", result.is_search);
}

}  // namespace offload::results
