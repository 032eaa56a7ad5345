#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "apps/rdma_tasks/benchmark.hpp"
#include "apps/rdma_tasks/options.hpp"

namespace offload::rdma_tool {

/// The results as a table like perftest's: a line with the options, then one for each size.
/// `initiator`: who issued the operations, "cpu" or a launcher's name.
std::string make_table(const Options& options, const std::string& device,
                       const std::string& initiator, std::span<const BenchmarkResult> results);

/// The results as JSON:
///   program, version, operation, role, device, transport   strings
///   connection     "cm", "descriptor", or "none" without a peer
///   completions    "polling" or "event-driven"
///   initiator      "cpu", or what issued operations with --initiator gpu
///   shared_queue   lanes that posted to one queue
///   iterations, in_flight, batch, connections, shared_receives, verify
///   ordering       "engine" for ordered, as the engine makes the send wait; else null
///   results        one a size and kind: name, size (bytes), operations, duration_seconds,
///                  checked (messages, at this end), bandwidth_mib_s, message_rate_mps
///                  (0 at an end without a duration),
///                  latency_us (null unless it was measured): min, mean, p50, p90, p95, p99,
///                  p99_9, p99_99, p99_999, max
nlohmann::ordered_json make_json(const Options& options, const std::string& device,
                                 const std::string& initiator,
                                 std::span<const BenchmarkResult> results);

}  // namespace offload::rdma_tool
