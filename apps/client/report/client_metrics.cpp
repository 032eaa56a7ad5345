#include "apps/client/report/client_metrics.hpp"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace offload::client {
namespace {

using telemetry::DurationHistogram;

struct NamedCount {
  telemetry::Metric metric;
  std::uint64_t IntervalCounts::*count;
  bool of_open_loop;
};
constexpr NamedCount kNamedCounts[] = {
    {{"offload_client_requests_total", "Requests sent."}, &IntervalCounts::sent, false},
    {{"offload_client_responses_total", "Responses received, right or wrong."},
     &IntervalCounts::answered,
     false},
    {{"offload_client_valid_responses_total", "Right responses, within --deadline."},
     &IntervalCounts::valid,
     false},
    {{"offload_client_transmit_bytes_total", "Bytes sent, with the headers of frames."},
     &IntervalCounts::tx_bytes,
     false},
    {{"offload_client_receive_bytes_total", "Bytes received, with the headers of frames."},
     &IntervalCounts::rx_bytes,
     false},
    {{"offload_client_due_requests_total", "Requests of an open loop that became due."},
     &IntervalCounts::due,
     true},
    {{"offload_client_noticed_late_total",
      "Due requests that this client noticed later than --lag-tolerance."},
     &IntervalCounts::noticed_late,
     true},
    {{"offload_client_held_back_total",
      "Due requests that waited for outstanding responses for longer than --lag-tolerance."},
     &IntervalCounts::held_back,
     true},
};

/// Adds latencies to buckets that are wider. One in the bucket of a bound counts as below it.
void add_latencies(const metrics::LatencyHistogram& from, DurationHistogram& to) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < DurationHistogram::kBounds.size(); ++i) {
    const auto bound = std::chrono::nanoseconds(DurationHistogram::kBounds[i]);
    const std::uint64_t up_to = from.count_up_to(bound);
    to.add(i, up_to - below);
    below = up_to;
  }
  to.add(DurationHistogram::kBounds.size(), from.count() - below);
  to.add_sum(static_cast<std::uint64_t>(
      std::llround(from.mean().count() * static_cast<double>(from.count()))));
}

nlohmann::json buckets_of(const DurationHistogram& histogram) {
  auto counts = nlohmann::json::array();
  for (std::size_t i = 0; i <= DurationHistogram::kBounds.size(); ++i) {
    counts.push_back(histogram.count_at(i));
  }
  return counts;
}

}  // namespace

void ClientMetrics::begin_run() {
  const std::lock_guard lock(mutex_);
  is_running_ = true;
}

void ClientMetrics::add(const Interval& interval) {
  const std::lock_guard lock(mutex_);
  for (const NamedCount& each : kNamedCounts) counts_.*each.count += interval.*each.count;
  counts_.errors.merge(interval.errors);
  counts_.in_flight_ns += interval.in_flight_ns;
  connects_ += interval.connect.count();
  add_latencies(interval.service, service_);
  add_latencies(interval.response, response_);
  add_latencies(interval.lag, lag_);
}

void ClientMetrics::end_run() {
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  ++runs_;
}

void ClientMetrics::collect(telemetry::Exposition& page) const {
  const std::lock_guard lock(mutex_);
  for (const NamedCount& each : kNamedCounts) {
    if (each.of_open_loop && !open_loop_) continue;
    page.counter(each.metric, {}, static_cast<double>(counts_.*each.count));
  }
  for (std::size_t i = 0; i < ErrorCounts::kKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    if (kind == ErrorKind::unanswered) continue;
    const std::uint64_t count = counts_.errors.of(kind);
    if (count == 0 && kind >= ErrorKind::first_refusal) continue;
    page.counter({"offload_client_errors_total", "Errors, by kind."},
                 {{"kind", std::string(name_of(kind))}}, static_cast<double>(count));
  }
  page.counter_of_seconds({"offload_client_in_flight_seconds_total",
                           "Sum of the times in flight; its rate is the mean number in flight."},
                          {}, static_cast<std::uint64_t>(counts_.in_flight_ns));
  page.counter({"offload_client_connects_total", "Connections made."}, {},
               static_cast<double>(connects_));
  page.counter({"offload_client_runs_total", "Runs that ended."}, {}, static_cast<double>(runs_));
  page.gauge({"offload_client_running", "1 while a run is under way."}, {}, is_running_ ? 1 : 0);
  page.histogram({"offload_client_service_time_seconds",
                  "Time from the send of a request until its right response."},
                 {}, service_);
  if (!open_loop_) return;
  page.histogram({"offload_client_response_time_seconds",
                  "Time from when a request was due until its right response."},
                 {}, response_);
  page.histogram({"offload_client_schedule_lag_seconds",
                  "Time from when a request was due until this client noticed."},
                 {}, lag_);
}

telemetry::Condition ClientMetrics::health() const {
  return {true, "the client answers"};
}

telemetry::Condition ClientMetrics::readiness() const {
  const std::lock_guard lock(mutex_);
  return {is_running_, is_running_ ? "a run is under way" : "no run is under way"};
}

nlohmann::json ClientMetrics::status() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json stages{{"service time", buckets_of(service_)}};
  if (open_loop_) {
    stages["response time"] = buckets_of(response_);
    stages["schedule lag"] = buckets_of(lag_);
  }
  auto errors = nlohmann::json::object();
  counts_.errors.for_each(
      [&](std::string_view name, std::uint64_t count) { errors[std::string(name)] = count; });
  return {{"totals",
           {{"requests", counts_.sent},
            {"responses", counts_.answered},
            {"valid", counts_.valid},
            {"errors", counts_.errors.total()},
            {"receive_bytes", counts_.rx_bytes},
            {"transmit_bytes", counts_.tx_bytes},
            {"runs", runs_}}},
          {"bounds_ns", DurationHistogram::kBounds},
          {"stages", std::move(stages)},
          {"errors", std::move(errors)}};
}

}  // namespace offload::client
