#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace offload::cli {
class CommandLine;
}

namespace offload::telemetry {

/// The address at which a program serves metrics and status.
struct MetricsAddress {
  std::string host = "127.0.0.1";  ///< a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;          ///< 0: any free one

  /// Parses "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; nothing for other text.
  static std::optional<MetricsAddress> parse(const std::string& text);

  /// Returns whether the Host header of a request (RFC 9110 7.2: "NAME", "NAME:PORT") is an IP
  /// address, "localhost" or `host`. A foreign page can make a browser ask under any other name,
  /// whose address its owner decides (DNS rebinding), and read the answer.
  [[nodiscard]] bool is_named_by(std::string_view host_header) const;
};

/// --metrics, into `endpoint`.
void add_metrics_option(cli::CommandLine& line, std::optional<MetricsAddress>& endpoint);

/// --admin, "unix:PATH", into `path`, which is empty without it.
void add_admin_option(cli::CommandLine& line, std::string& path);

/// Returns the path of "unix:PATH"; nothing for another address.
std::optional<std::string> parse_admin_address(const std::string& text);

}  // namespace offload::telemetry
