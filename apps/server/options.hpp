#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/server/admission/client_limits.hpp"
#include "cli/configuration.hpp"
#include "cli/leave.hpp"
#include "cli/log_options.hpp"
#include "comch/address.hpp"
#include "core/clock.hpp"
#include "kernels/channel_layout.hpp"
#include "net/address_range.hpp"
#include "telemetry/options.hpp"

namespace offload::server {

/// A port for clients, and what is done to the requests that come there.
struct Listen {
  std::uint16_t port;
  std::string service;

  friend bool operator==(const Listen&, const Listen&) = default;
};

/// The command line, checked. The help text describes each option (options.cpp).
struct Options {
  std::string comch = comch::default_address();
  comch::Security comch_security{};
  rdma::PathChoice comch_path{};
  std::string listen_address = "127.0.0.1";
  std::uint16_t listen_port = 12345;
  std::vector<Listen> listens;  ///< one at least: --listen, or listen_port and service
  std::string tls_certificate;  ///< empty: clients speak plain
  std::string tls_key;
  std::string tls_client_ca;   ///< empty: clients need no certificate
  std::string tls_client_crl;  ///< empty: no certificate is revoked
  std::uint32_t threads = 1;
  std::vector<net::AddressRange> proxies;  ///< their connections begin with a PROXY header
  std::vector<int> cpus;                   ///< one thread on each, instead of `threads`
  std::uint32_t max_concurrent_messages = 128;
  std::uint32_t max_message_length = 256;
  std::uint32_t max_response_length = kernels::kLongestDigest;
  std::string service = "reverse";
  core::Duration worker_timeout = core::seconds(10);
  core::Duration request_timeout = core::seconds(30);
  ClientLimits clients{};
  core::Duration shutdown_timeout = core::seconds(5);
  core::Duration spin = std::chrono::microseconds(50);
  core::Duration slow_request{};  ///< 0: none is logged
  core::Duration stall_limit = std::chrono::milliseconds(100);
  bool shutdown_together = false;
  std::optional<telemetry::MetricsAddress> metrics;  ///< none: it tells nothing of itself
  std::string admin;  ///< path of its socket; empty: it takes no commands
  cli::LogOptions log{};
  cli::Configuration configuration{};
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

/// The processors of all I/O threads, -1 for any: each port has as many threads, on the same ones.
std::vector<int> io_thread_cpus(const Options& options);
/// Returns the service of each port.
std::vector<std::string> services_of(const Options& options);

}  // namespace offload::server
