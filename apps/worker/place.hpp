#pragma once

#include <arpa/inet.h>
#include <fmt/core.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/units.hpp"
#include "device/interfaces.hpp"

namespace offload::worker {

/// An address as list_interfaces() writes it; empty for any other text.
inline std::string address_of(const std::string& text, int family) {
  in6_addr bytes{};  // or in_addr
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (::inet_pton(family, text.c_str(), &bytes) != 1) return {};
  return ::inet_ntop(family, &bytes, written.data(), written.size());
}

/// The address at which requests arrive as datagrams.
struct DatagramPlace {
  std::string interface;  ///< empty: that which has the address
  std::string address;    ///< IPv4 or IPv6; empty: all of the interface's
  std::uint16_t port = 0;

  /// Parses "eth1:4000", "10.0.0.1:4000", "[fd00::1]:4000".
  static std::optional<DatagramPlace> parse(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) return std::nullopt;
    DatagramPlace place;
    place.port = core::parse_number<std::uint16_t>(text.substr(colon + 1)).value_or(0);
    if (place.port == 0) return std::nullopt;
    std::string host = text.substr(0, colon);
    const bool is_v6 = host.starts_with('[') && host.ends_with(']');
    if (is_v6) host = host.substr(1, host.size() - 2);
    place.address = address_of(host, is_v6 ? AF_INET6 : AF_INET);
    if (!place.address.empty()) return place;
    const bool is_name = host.size() < IFNAMSIZ && host.find_first_of(":/[]") == host.npos;
    if (is_v6 || !is_name) return std::nullopt;
    place.interface = host;
    return place;
  }
};

/// The Ethernet interface that it names, or that has its address. Throws Error (not_found).
inline device::Interface interface_of(const DatagramPlace& place) {
  for (device::Interface& one : device::list_interfaces()) {
    const bool is_it = place.address.empty()
                           ? one.name == place.interface
                           : std::ranges::count(one.addresses, place.address) != 0;
    if (is_it) return std::move(one);
  }
  throw core::Error(
      core::ErrorCode::not_found,
      place.address.empty()
          ? fmt::format("there is no Ethernet interface '{}'", place.interface)
          : fmt::format("no Ethernet interface of this machine has the address {}", place.address));
}

}  // namespace offload::worker
