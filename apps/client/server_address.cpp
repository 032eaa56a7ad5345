#include "apps/client/server_address.hpp"

#include <fmt/core.h>

#include <cstdint>

#include "core/units.hpp"

namespace offload::client {

std::string take_port_of_address(Options& options, bool has_port_option) {
  std::string& address = options.server_address;
  if (address.find("://") != std::string::npos) {
    return fmt::format(
        "--server-ip-address: '{}' is a URL; allowed: an address or a name, such as 10.0.0.2, with "
        "its port behind it (10.0.0.2:7000) or in --server-ip-port",
        address);
  }
  const std::size_t colon = address.rfind(':');
  const bool is_bracketed = colon != std::string::npos && address.front() == '[';
  const bool has_port = is_bracketed ? address[colon - 1] == ']' : address.find(':') == colon;
  if (colon == std::string::npos || !has_port) return {};
  const auto port = core::parse_number<std::uint16_t>(address.substr(colon + 1));
  if (!port || *port == 0 || colon == 0) {
    return fmt::format(
        "--server-ip-address: '{}' is not an address, a name, or one with a port from 1 to 65535, "
        "such as 10.0.0.2:7000 or [fd00::2]:7000",
        address);
  }
  if (has_port_option && options.server_port != *port) {
    return fmt::format(
        "--server-ip-address has port {}, and --server-ip-port is {}; give the port once", *port,
        options.server_port);
  }
  address.resize(colon);
  options.server_port = *port;
  return {};
}

}  // namespace offload::client
