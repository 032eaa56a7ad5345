#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/worker/place.hpp"
#include "backend/services.hpp"
#include "cli/configuration.hpp"
#include "cli/leave.hpp"
#include "cli/log_options.hpp"
#include "comch/address.hpp"
#include "core/clock.hpp"
#include "telemetry/options.hpp"

namespace offload::worker {

/// The options of the command line, checked. The help text in options.cpp says what each means.
struct Options {
  std::string comch = comch::default_address();
  comch::Security comch_security{};
  rdma::PathChoice comch_path{};
  std::string backend = "auto";
  std::vector<std::string> service_modules;  ///< paths
  std::vector<std::string> service_sources;  ///< paths
  backend::ServiceOptions service_options{};
  std::vector<std::string> gpu_pci_addresses;      ///< a worker each; empty: one, the first GPU
  std::optional<std::uint32_t> warps_per_channel;  ///< none: the back end's choice
  core::Duration idle_sleep = std::chrono::microseconds(20);
  core::Duration spin = std::chrono::microseconds(20);
  core::Duration connect_timeout = core::seconds(60);
  core::Duration shutdown_timeout = core::seconds(10);
  core::Duration stuck_after = core::seconds(2);
  std::uint64_t max_memory = std::uint64_t{8} << 30;  ///< bytes, of all channels
  std::string data_path = "auto";
  bool stands_by = false;
  bool replaces = false;
  bool shutdown_together = false;
  std::optional<DatagramPlace> udp;  ///< requests come there, not from a server
  std::string udp_service;
  std::uint32_t udp_queues = 1;                      ///< of each of the interface's
  std::optional<telemetry::MetricsAddress> metrics;  ///< none: it tells nothing of itself
  std::string admin;  ///< path of its socket; empty: it takes no commands
  cli::LogOptions log{};
  cli::Configuration configuration{};
  bool list_devices = false;
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::worker
