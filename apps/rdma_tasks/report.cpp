#include "apps/rdma_tasks/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace offload::rdma_tool {
namespace {

using Json = nlohmann::ordered_json;

double operations_per_second(const BenchmarkResult& result) {
  if (result.duration == core::Duration{}) return 0;
  return static_cast<double>(result.operations) / core::to_seconds(result.duration);
}

double mebibytes_per_second(const BenchmarkResult& result) {
  return operations_per_second(result) * result.size / (1 << 20);
}

const char* connection_of(const Options& options) {
  if (is_alone(options.operation)) return "none";
  return options.cm_address.empty() ? "descriptor" : "cm";
}

const char* completions_of(const Options& options) {
  return options.event_driven ? "event-driven" : "polling";
}

/// "min[us]", "p99.9[us]", ..., one for each value of a summary.
std::string latency_heads(const BenchmarkResult& result) {
  std::string heads;
  for (const auto& [name, time] : result.latency.summary()) {
    std::string head = fmt::format("{}[us]", name);
    std::ranges::replace(head, '_', '.');
    heads += fmt::format(" {:>11}", head);
  }
  return heads;
}

}  // namespace

std::string make_table(const Options& options, const std::string& device,
                       const std::string& initiator, std::span<const BenchmarkResult> results) {
  std::string table =
      fmt::format("{} ({}), {} on {}, {}, {}, {} connection(s), {} in flight, data {}{}\n",
                  name_of(options.operation), name_of(options.role), name_of(options.qp_type),
                  device, connection_of(options), completions_of(options), options.connections,
                  options.in_flight, options.verify ? "checked" : "not checked",
                  options.initiator == Initiator::cpu ? "" : fmt::format(", by {}", initiator));
  const bool latency = !results.empty() && results.front().latency.count() != 0;
  table += fmt::format("{:>9} {:>11} {:>11}", "#bytes", "#iterations", "#checked");
  table += latency ? latency_heads(results.front())
                   : fmt::format(" {:>15} {:>15}", "average[MiB/s]", "rate[Mmsg/s]");
  table += "\n";
  for (const BenchmarkResult& result : results) {
    table += fmt::format("{:>9} {:>11} {:>11}", result.size, result.operations, result.checked);
    if (latency) {
      for (const auto& [name, time] : result.latency.summary()) {
        table += fmt::format(" {:>11.2f}", time);
      }
    } else {
      table += fmt::format(" {:>15.2f} {:>15.6f}", mebibytes_per_second(result),
                           operations_per_second(result) / 1e6);
    }
    table += "  " + result.name + "\n";
  }
  return table;
}

Json make_json(const Options& options, const std::string& device, const std::string& initiator,
               std::span<const BenchmarkResult> results) {
  Json list = Json::array();
  for (const BenchmarkResult& result : results) {
    Json latency;
    if (result.latency.count() != 0) {
      for (const auto& [name, time] : result.latency.summary()) latency[name] = time;
    }
    list.push_back({{"name", result.name},
                    {"size", result.size},
                    {"operations", result.operations},
                    {"duration_seconds", core::to_seconds(result.duration)},
                    {"checked", result.checked},
                    {"bandwidth_mib_s", mebibytes_per_second(result)},
                    {"message_rate_mps", operations_per_second(result) / 1e6},
                    {"latency_us", std::move(latency)}});
  }
  return {{"program", "offload-rdma"},
          {"version", OFFLOAD_VERSION},
          {"operation", name_of(options.operation)},
          {"role", name_of(options.role)},
          {"device", device},
          {"transport", name_of(options.qp_type)},
          {"connection", connection_of(options)},
          {"completions", completions_of(options)},
          {"initiator", initiator},
          {"shared_queue", options.queue_lanes},
          {"iterations", options.iterations},
          {"in_flight", options.in_flight},
          {"batch", options.batch},
          {"connections", options.connections},
          {"shared_receives", options.shared_receives},
          {"verify", options.verify},
          {"ordering", options.operation == Operation::ordered ? Json("engine") : Json()},
          {"results", std::move(list)}};
}

}  // namespace offload::rdma_tool
