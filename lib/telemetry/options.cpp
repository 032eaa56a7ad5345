#include "telemetry/options.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include <utility>

#include "cli/options.hpp"
#include "core/units.hpp"
#include "net/unix_socket.hpp"

namespace offload::telemetry {

std::optional<MetricsAddress> MetricsAddress::parse(const std::string& text) {
  MetricsAddress endpoint;
  std::size_t port = 0;
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
    endpoint.host = text.substr(0, colon);
    port = colon + 1;
    const bool bracketed = endpoint.host.starts_with('[') && endpoint.host.ends_with(']');
    // The end of an IPv6 address without brackets is ambiguous.
    if (!bracketed && endpoint.host.find(':') != std::string::npos) return std::nullopt;
  }
  const auto number = core::parse_number<std::uint16_t>(text.substr(port));
  if (endpoint.host.empty() || !number) return std::nullopt;
  endpoint.port = *number;
  return endpoint;
}

bool MetricsAddress::is_named_by(std::string_view host_header) const {
  const bool bracketed = host_header.starts_with('[');
  if (bracketed) host_header.remove_prefix(1);
  const std::string name(host_header.substr(0, host_header.find(bracketed ? ']' : ':')));
  in6_addr address{};  // has room for both
  if (::inet_pton(bracketed ? AF_INET6 : AF_INET, name.c_str(), &address) == 1) return true;
  return ::strcasecmp(name.c_str(), "localhost") == 0 ||
         ::strcasecmp(name.c_str(), host.c_str()) == 0;
}

void add_metrics_option(cli::CommandLine& line, std::optional<MetricsAddress>& endpoint) {
  cli::add(line, "--metrics ADDRESS:PORT", endpoint, &MetricsAddress::parse,
           "PORT or ADDRESS:PORT, such as 9100 or [::1]:9100",
           "Serve /metrics (Prometheus), /status (JSON), /healthz and /readyz over HTTP at this "
           "address. A port alone means loopback; port 0 means any free port, which the log names");
}

std::optional<std::string> parse_admin_address(const std::string& text) {
  constexpr std::string_view kScheme = "unix:";
  if (!text.starts_with(kScheme)) return std::nullopt;
  std::string path = text.substr(kScheme.size());
  return net::is_unix_path(path) ? std::optional(std::move(path)) : std::nullopt;
}

void add_admin_option(cli::CommandLine& line, std::string& path) {
  cli::add(line, "--admin unix:PATH", path, &parse_admin_address,
           "unix:PATH, with a path of at most 107 bytes",
           "Accept commands of offload-ctl at this socket, only from this user and root");
}

}  // namespace offload::telemetry
