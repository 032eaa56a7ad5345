#include "results/consistency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace offload::results {
namespace {

/// A bucket of a histogram is 0.8 % wide, or 1 ns.
constexpr double kBucketShare = 0.02;
constexpr double kBucketUs = 0.0005;
/// Rates are computed from counts in floating point.
constexpr double kRounding = 1e-6;

bool is_near(double value, double of_histogram) {
  return std::abs(value - of_histogram) <= kBucketShare * of_histogram + kBucketUs;
}

Contradiction unlike_histogram(const char* place, double value, double of_histogram) {
  return {place, fmt::format("is {:g}, but its histogram has {:g}", value, of_histogram)};
}

Contradiction contradiction_of_counts(const Run& run) {
  const std::uint64_t timed = run.service_time_us.count;
  if (run.valid_responses > run.operation_count) {
    return {"valid_responses", "is larger than operation_count"};
  }
  if (timed > run.operation_count) {
    return {"service_time_us.count", "is larger than operation_count"};
  }
  if (run.valid_responses > timed) {
    return {"valid_responses", "is larger than service_time_us.count"};
  }
  if (run.response_time_us && run.response_time_us->count > run.operation_count) {
    return {"response_time_us.count", "is larger than operation_count"};
  }
  if (run.error_count() < run.operation_count - run.valid_responses) {
    return {"errors", "are fewer than the responses that are not valid"};
  }
  if (run.operation_count > 0 && (run.connections == 0 || run.max_concurrent_messages == 0)) {
    return {run.connections == 0 ? "connections" : "max_concurrent_messages",
            "is 0, but there are responses"};
  }
  return {};
}

Contradiction contradiction_of_intervals(const Run& run) {
  std::uint64_t operations = 0;
  std::uint64_t valid = 0;
  std::uint64_t errors = 0;
  std::uint64_t timed = 0;
  for (const RunInterval& interval : run.intervals) {
    operations += interval.operations;
    valid += interval.valid;
    errors += interval.errors;
    timed += interval.service_time_us.count;
  }
  const auto unlike = [](const char* what, std::uint64_t sum, std::uint64_t whole) {
    return Contradiction{"intervals",
                         fmt::format("have {} {}, but the run has {}", sum, what, whole)};
  };
  if (operations != run.operation_count) {
    return unlike("operations", operations, run.operation_count);
  }
  if (valid != run.valid_responses) return unlike("valid responses", valid, run.valid_responses);
  if (errors > run.error_count()) return unlike("errors", errors, run.error_count());
  if (timed != run.service_time_us.count) {
    return unlike("latencies", timed, run.service_time_us.count);
  }
  return {};
}

/// At least this number of responses came within the time that rates are of: those of intervals
/// that ended within it, and all but what was in flight at the end of sending.
std::uint64_t fewest_in_time(const Run& run) {
  if (run.verdict_code == "cut_short") return 0;  // there is no such end
  std::uint64_t sum = 0;
  for (const RunInterval& interval : run.intervals) {
    const double end_s = interval.start_s + interval.length_s;
    if (end_s <= run.warmup_seconds + run.duration_seconds) sum += interval.operations;
  }
  const std::uint64_t in_flight = run.connections * run.max_concurrent_messages;
  return std::max(sum, run.operation_count - std::min(run.operation_count, in_flight));
}

Contradiction contradiction_of_rates(const Run& run) {
  if (run.operation_count > 0 && run.duration_seconds <= 0) {
    return {"duration_seconds", "is 0, but there are responses"};
  }
  const double in_time = run.io_rate_miops * 1e6 * run.duration_seconds;
  const auto most = static_cast<double>(run.operation_count);
  const auto fewest = static_cast<double>(fewest_in_time(run));
  if (in_time > most * (1 + kRounding) || in_time < fewest * (1 - kRounding)) {
    return {"io_rate_miops", fmt::format("is that of {:.0f} responses, but there are {:.0f}",
                                         in_time, in_time > most ? most : fewest)};
  }
  constexpr double kGib = 1U << 30;
  for (const auto& [name, rate, bytes] :
       {std::tuple{"tx_data_rate_gib_s", run.tx_data_rate_gib_s, run.tx_bytes},
        std::tuple{"rx_data_rate_gib_s", run.rx_data_rate_gib_s, run.rx_bytes}}) {
    if (rate * run.duration_seconds * kGib > static_cast<double>(bytes) * (1 + kRounding)) {
      return {name, "is that of more bytes than there are"};
    }
  }
  return {};
}

Contradiction contradiction_of_loop(const Run& run) {
  const bool is_open = run.arrivals.has_value();
  if (run.offered_per_second && !is_open) return {"arrivals", "is null, but a rate is offered"};
  if (run.response_time_us.has_value() != is_open) {
    return {"response_time_us", is_open ? "is null in an open loop" : "is there in a closed loop"};
  }
  const bool is_of_closed = run.verdict_code == "closed_loop";
  if (run.verdict_code != "cut_short" && is_of_closed == is_open) {
    return {"verdict.code",
            fmt::format("is {} in {} loop", run.verdict_code, is_open ? "an open" : "a closed")};
  }
  return {};
}

/// Each request of a load of several kinds is one of a kind.
Contradiction contradiction_of_kinds(const Run& run) {
  if (run.kinds.empty()) return {};
  KindFigures sum;
  for (const KindFigures& kind : run.kinds) {
    const auto alike = std::ranges::count(run.kinds, kind.name, &KindFigures::name);
    if (alike != 1) return {"kinds", "have two of the same name"};
    if (kind.valid_responses > std::min(kind.operation_count, kind.service_time_us.count)) {
      return {"kinds", "have one with more valid responses than responses"};
    }
    if (kind.response_time_us.has_value() != run.response_time_us.has_value()) {
      return {"kinds", "have response times only in part"};
    }
    sum.operation_count += kind.operation_count;
    sum.valid_responses += kind.valid_responses;
    sum.connections += kind.connections;
    sum.service_time_us.count += kind.service_time_us.count;
  }
  for (const auto& [what, of_kinds, whole] :
       {std::tuple{"responses", sum.operation_count, run.operation_count},
        std::tuple{"valid responses", sum.valid_responses, run.valid_responses},
        std::tuple{"connections", sum.connections, run.connections},
        std::tuple{"latencies", sum.service_time_us.count, run.service_time_us.count}}) {
    if (of_kinds == whole) continue;
    return {"kinds", fmt::format("have {} {}, but the run has {}", of_kinds, what, whole)};
  }
  return {};
}

}  // namespace

Contradiction contradiction_in(const Latency& latency, const metrics::LatencyHistogram& histogram) {
  if (histogram.count() != latency.count) {
    return {"histogram",
            fmt::format("has {} latencies, but count is {}", histogram.count(), latency.count)};
  }
  const auto summary = histogram.summary();
  for (std::size_t i = 0; i < summary.size(); ++i) {
    if (!latency.has(static_cast<Statistic>(i))) continue;
    if (!is_near(latency.us[i], summary[i].second)) {
      return unlike_histogram(kStatisticNames[i], latency.us[i], summary[i].second);
    }
  }
  return {};
}

Contradiction contradiction_in(const IntervalLatency& latency,
                               const metrics::LatencyHistogram& histogram) {
  const auto summary = histogram.summary();
  for (const auto& [statistic, us] :
       {std::pair{Statistic::p50, latency.p50}, std::pair{Statistic::p99, latency.p99},
        std::pair{Statistic::max, latency.max}}) {
    const auto i = static_cast<std::size_t>(statistic);
    if (latency.has(statistic) && !is_near(us, summary[i].second)) {
      return unlike_histogram(kStatisticNames[i], us, summary[i].second);
    }
  }
  return {};
}

Contradiction contradiction_in(const Run& run) {
  for (const auto check : {contradiction_of_counts, contradiction_of_intervals,
                           contradiction_of_rates, contradiction_of_loop, contradiction_of_kinds}) {
    if (Contradiction found = check(run); !found.place.empty()) return found;
  }
  return {};
}

Contradiction contradiction_in(const RepeatEstimate& estimate) {
  if (estimate.low <= estimate.median && estimate.median <= estimate.high) return {};
  return {"median", "is not between low and high"};
}

}  // namespace offload::results
