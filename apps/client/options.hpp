#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/client/requests/arrivals.hpp"
#include "apps/client/requests/payload.hpp"
#include "apps/client/requests/request_kind.hpp"
#include "apps/client/requests/service.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "apps/client/requests/verification.hpp"
#include "cli/leave.hpp"
#include "cli/log_options.hpp"
#include "core/clock.hpp"
#include "telemetry/options.hpp"

namespace offload::client {

/// The most requests a second of a thread: noticing that one is due takes some ten nanoseconds.
inline constexpr double kHighestThreadRate = 10e6;

/// One run for each value.
struct Scan {
  enum class Of : std::uint8_t { rate, depth };
  Of of = Of::rate;
  std::vector<double> values;
};

/// The highest rate whose latency stays within a bound.
struct Search {
  std::string percentile;  ///< as said: "p99"
  double quantile = 0;     ///< 0 to 1
  core::Duration bound{};
};

/// The options of the command line, checked. The help text in options.cpp says what each means.
struct Options {
  std::string server_address;
  std::uint16_t server_port = 12345;
  core::Duration connect_timeout = core::seconds(10);

  bool udp = false;  ///< requests are datagrams, to a worker with --udp
  std::uint32_t udp_retries = 0;

  bool tls = false;
  std::string tls_ca;           ///< empty: the system's
  std::string tls_crl;          ///< empty: no certificate is revoked
  std::string tls_server_name;  ///< empty: the server's address
  std::string tls_certificate;  ///< empty: none
  std::string tls_key;

  std::uint32_t thread_count = 1;
  std::uint32_t connections = 1;  ///< of each thread
  std::uint32_t max_concurrent_messages = 128;
  std::uint64_t reconnect_every = 0;  ///< requests; 0: never
  std::optional<double> rate;         ///< requests a second of all threads; none: a closed loop
  std::string rate_steps_text;        ///< as said; empty: one rate
  std::vector<RateStep> rate_steps;   ///< then: `rate` is the mean of these, `duration` their sum
  std::uint64_t burst = 1;            ///< requests of an open loop that are due at once
  core::Duration think{};             ///< of a closed loop, between a response and the next request
  ArrivalKind arrivals = ArrivalKind::constant;
  std::string schedule;    ///< empty: none
  std::uint64_t seed = 0;  ///< of arrivals and of the choice of requests
  core::Duration lag_tolerance = std::chrono::milliseconds(1);

  std::uint64_t iteration_count = 10'000;  ///< requests per connection; unused with `duration`
  std::optional<core::Duration> duration;
  core::Duration warmup{};
  std::optional<double> start_at;  ///< seconds since the epoch
  std::uint32_t repeat = 1;
  std::optional<Scan> scan;
  std::optional<Search> search;

  std::string message = "hello";  ///< unused with `sizes`
  std::optional<std::string> expected_response;
  std::optional<SizeMix> sizes;  ///< of --size, --mix, --uniform-size
  std::string sizes_text;        ///< as said
  std::string sizes_file;        ///< empty: none
  std::string requests_file;     ///< of --requests; empty: none
  bool in_order = false;         ///< its requests, otherwise drawn
  Payload payload;
  std::string payload_text = "random";
  Service service = Service::reverse;
  Verification verification;
  std::vector<RequestKind> kinds;  ///< empty: one kind, as the members above say

  bool count_errors = false;  ///< else the first one ends the run
  core::Duration response_timeout = core::seconds(30);
  std::optional<core::Duration> deadline;

  std::optional<telemetry::MetricsAddress> metrics;  ///< of the client's own; none: not served
  std::string scrape;  ///< HOST:PORT of the server's --metrics; empty: none
  std::string output;  ///< empty: none; so are the next
  std::string histogram_log;
  std::string csv;
  std::string request_log;
  bool quiet = false;
  cli::LogOptions log{};

  /// Whether requests have sizes, and no text of --message-string.
  [[nodiscard]] bool has_sizes() const noexcept {
    return sizes || !sizes_file.empty() || !schedule.empty() ||
           payload.kind == Payload::Kind::file || !requests_file.empty();
  }
  /// Returns whether responses are compared with those of `service`.
  [[nodiscard]] bool uses_service() const noexcept {
    return !expected_response && verification.kind == Verification::Kind::builtin;
  }
  /// Returns these options with the requests, port and verification of a kind, and no kinds.
  [[nodiscard]] Options of_kind(const RequestKind& kind) const;
  /// Returns why the kinds contradict each other or the rest; empty if they do not.
  [[nodiscard]] std::string wrong_kinds() const;
  /// Returns whether requests become due by the clock.
  [[nodiscard]] bool is_open_loop() const noexcept {
    return rate || !schedule.empty() || search || (scan && scan->of == Scan::Of::rate);
  }
};

/// Returns how responses are checked, in words: "builtin (service reverse)", "length:40", ...
std::string verification_of(const Options& options);

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::client
