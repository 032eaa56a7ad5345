#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/latency_histogram.hpp"

/// A result of offload-client (--output, format 1) as values: offload-client makes and writes it,
/// offload-report reads it. Times named _us are microseconds, all
/// others seconds. The names of the members are those of the format.
namespace offload::results {

/// The statistics of a distribution of latencies, in the order of the format.
enum class Statistic : std::uint8_t { min, mean, p50, p90, p95, p99, p99_9, p99_99, p99_999, max };
inline constexpr std::array<const char*, 10> kStatisticNames = {
    "min", "mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999", "max"};

/// The number of latencies that a statistic needs: a percentile has at least one of them beyond it.
inline constexpr std::array<std::uint64_t, kStatisticNames.size()> kFewestSamples = {
    1, 1, 1, 10, 20, 100, 1000, 10'000, 100'000, 1};

/// A run with fewer right responses is no measurement of a server: its p99 needs as many.
inline constexpr std::uint64_t kFewestResponses =
    kFewestSamples[static_cast<std::size_t>(Statistic::p99)];

struct Latency {
  std::uint64_t count = 0;
  std::array<double, kStatisticNames.size()> us{};  ///< indexed by Statistic
  std::string histogram;  ///< HdrHistogram V2 in base64, as metrics/hdr_codec.hpp reads it

  static Latency of(const metrics::LatencyHistogram& histogram);
  [[nodiscard]] double at(Statistic statistic) const {
    return us[static_cast<std::size_t>(statistic)];
  }
  /// Returns whether there are enough latencies for the statistic.
  [[nodiscard]] bool has(Statistic statistic) const {
    return count >= kFewestSamples[static_cast<std::size_t>(statistic)];
  }
};

/// The latencies of one interval.
struct IntervalLatency {
  double p50 = 0;
  double p99 = 0;
  double max = 0;
  std::string histogram;
  std::uint64_t count = 0;  ///< not in the file, but in the histogram

  /// Returns whether there are enough latencies for the statistic.
  [[nodiscard]] bool has(Statistic statistic) const {
    return count >= kFewestSamples[static_cast<std::size_t>(statistic)];
  }
  static IntervalLatency of(const metrics::LatencyHistogram& histogram);
};

struct RunInterval {
  double start_s = 0;  ///< since Run::started_at_unix_s
  double length_s = 0;
  std::uint64_t operations = 0;
  std::uint64_t valid = 0;
  std::uint64_t errors = 0;
  std::optional<double> in_flight;  ///< the mean; nothing in a merged result
  IntervalLatency service_time_us;
  std::optional<IntervalLatency> response_time_us;
};

/// Numbers by their names in the file, in its order.
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
inline std::uint64_t sum_of(const Counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

/// The requests of one kind, in a load of several (--kind).
struct KindFigures {
  std::string name;
  std::uint64_t port = 0;
  double share = 0;  ///< of the rate, and about that of the connections
  std::uint64_t connections = 0;
  std::optional<double> offered_per_second;  ///< nothing: a closed loop
  double valid_per_second = 0;
  std::uint64_t operation_count = 0;
  std::uint64_t valid_responses = 0;
  Counts errors;  ///< by kind of error
  Latency service_time_us;
  std::optional<Latency> response_time_us;

  [[nodiscard]] std::uint64_t error_count() const { return sum_of(errors); }
};

struct Run {
  double started_at_unix_s = 0;              ///< warm-up included
  std::optional<double> offered_per_second;  ///< nothing: a closed loop
  std::optional<std::string> arrivals;
  std::uint64_t connections = 0;
  std::uint64_t max_concurrent_messages = 0;  ///< of each connection
  double warmup_seconds = 0;
  double duration_seconds = 0;  ///< of the measured part
  std::uint64_t operation_count = 0;
  std::uint64_t valid_responses = 0;
  std::uint64_t unanswered_requests = 0;
  std::uint64_t tx_bytes = 0;  ///< on the wire, with the headers of frames
  std::uint64_t rx_bytes = 0;
  double tx_data_rate_gib_s = 0;  ///< of payloads
  double rx_data_rate_gib_s = 0;
  std::optional<double> tx_wire_rate_gib_s;  ///< nothing in a result that was read
  std::optional<double> rx_wire_rate_gib_s;
  double io_rate_miops = 0;
  Counts errors;                    ///< by kind
  std::optional<Counts> datagrams;  ///< of UDP, else empty; nothing in a merged result
  Latency service_time_us;
  std::optional<Latency> response_time_us;
  std::optional<Latency> schedule_lag_us;
  Latency connect_time_us;
  std::optional<Counts> requests;  ///< of an open loop, else empty; nothing in a merged result
  double in_flight_mean = 0;
  double in_flight_by_littles_law = 0;
  std::optional<double> client_busy;  ///< nothing in a merged result
  std::vector<KindFigures> kinds;     ///< empty: one kind of requests
  std::string verdict_code;
  std::string verdict_text;
  std::vector<RunInterval> intervals;

  [[nodiscard]] double measured_from() const { return started_at_unix_s + warmup_seconds; }
  [[nodiscard]] double measured_until() const { return measured_from() + duration_seconds; }
  [[nodiscard]] std::uint64_t error_count() const { return sum_of(errors); }
};

struct Machine {
  std::string host;
  std::string system;
  std::string processor;
  std::uint64_t processors = 0;
};

struct RepeatEstimate {
  double median = 0;
  double low = 0;
  double high = 0;
  double confidence = 0.95;
};

struct Result {
  std::string file;  ///< what it was read from, for messages and headings
  std::string version;
  std::string revision;
  std::vector<std::string> command_line;
  Machine machine;
  std::vector<std::pair<std::string, std::string>> options;  ///< name and value as JSON
  std::string status;                                        ///< ok, failed or interrupted
  std::vector<std::string> faults;
  std::vector<Run> runs;
  std::vector<std::pair<std::string, RepeatEstimate>> repeats;  ///< empty: null in the file
  bool is_search = false;
};

}  // namespace offload::results
