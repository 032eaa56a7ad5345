#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/client/load_run.hpp"
#include "apps/client/options.hpp"

namespace offload::client {

/// The statistics as text: one "name: value" a line. The first five names are those of DOCA's
/// dpu_gpu_remote_offload client, so that scripts that parse its output can parse this.
std::string make_table(const Statistics& statistics);

/// The statistics and options as JSON:
///   program, version   strings
///   options            server_ip_address, server_ip_port, thread_count,
///                      connections (of each thread),
///                      iteration_count (null with a duration), duration_seconds (null without),
///                      message_length (bytes), random_payload (true with --size),
///                      max_concurrent_messages, service
///   status             "ok", "failed" or "interrupted"
///   faults             strings, at most one a thread
///   duration_seconds, operation_count, valid_responses, unanswered_requests,
///   tx_bytes, rx_bytes,
///   tx_data_rate_gib_s, rx_data_rate_gib_s, io_rate_miops
///   latency_us         min, p50, p90, p99, p99_9, max: microseconds
nlohmann::ordered_json make_json(const Options& options, const RunOutcome& outcome);

}  // namespace offload::client
