#include "apps/client/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace offload::client {
namespace {

template <class Value>
std::string line(const std::string& name, const char* value_format, Value value) {
  return fmt::format("{:<26}{}\n", name + ":", fmt::format(fmt::runtime(value_format), value));
}

const char* status_of(const RunOutcome& outcome) noexcept {
  if (!outcome.faults.empty()) return "failed";
  return outcome.interrupted ? "interrupted" : "ok";
}

nlohmann::ordered_json json_of(const Options& options) {
  using json = nlohmann::ordered_json;
  return {
      {"server_ip_address", options.server_address},
      {"server_ip_port", options.server_port},
      {"thread_count", options.thread_count},
      {"connections", options.connections},
      {"iteration_count", options.duration ? json() : json(options.iteration_count)},
      {"duration_seconds", options.duration ? json(core::to_seconds(*options.duration)) : json()},
      {"message_length", options.size ? std::size_t{*options.size} : options.message.size()},
      {"random_payload", options.size.has_value()},
      {"max_concurrent_messages", options.max_concurrent_messages},
      {"service", name_of(options.service)},
  };
}

}  // namespace

std::string make_table(const Statistics& statistics) {
  std::string table =
      line("Duration (seconds)", "{:.6f}", core::to_seconds(statistics.duration)) +
      line("Operation count", "{}", statistics.operations) +
      line("Tx Data rate (GiB/s)", "{:.6f}", statistics.tx_gib_per_second()) +
      line("Rx Data rate (GiB/s)", "{:.6f}", statistics.rx_gib_per_second()) +
      line("IO rate (MIOP/s)", "{:.6f}", statistics.million_operations_per_second()) +
      line("Valid responses", "{}", statistics.valid);
  if (statistics.unanswered > 0) table += line("Unanswered requests", "{}", statistics.unanswered);
  for (const auto& [key, microseconds] : statistics.latency.summary()) {
    std::string name(key);
    std::replace(name.begin(), name.end(), '_', '.');  // p99.9
    table += line(fmt::format("Latency {} (us)", name), "{:.3f}", microseconds);
  }
  return table;
}

nlohmann::ordered_json make_json(const Options& options, const RunOutcome& outcome) {
  const Statistics& statistics = outcome.statistics;
  nlohmann::ordered_json latency;
  for (const auto& [name, microseconds] : statistics.latency.summary())
    latency[name] = microseconds;
  return {
      {"program", "offload-client"},
      {"version", OFFLOAD_VERSION},
      {"options", json_of(options)},
      {"status", status_of(outcome)},
      {"faults", outcome.faults},
      {"duration_seconds", core::to_seconds(statistics.duration)},
      {"operation_count", statistics.operations},
      {"valid_responses", statistics.valid},
      {"unanswered_requests", statistics.unanswered},
      {"tx_bytes", statistics.tx_bytes},
      {"rx_bytes", statistics.rx_bytes},
      {"tx_data_rate_gib_s", statistics.tx_gib_per_second()},
      {"rx_data_rate_gib_s", statistics.rx_gib_per_second()},
      {"io_rate_miops", statistics.million_operations_per_second()},
      {"latency_us", latency},
  };
}

}  // namespace offload::client
