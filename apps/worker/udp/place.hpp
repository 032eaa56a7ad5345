#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace offload::worker {

/// Where requests come to as datagrams.
struct DatagramPlace {
  std::string interface;  ///< empty: that which has the address
  std::string address;    ///< IPv4 or IPv6; empty: any of the interface's
  std::uint16_t port = 0;

  /// Of "eth1:4000", "10.0.0.1:4000", "[fd00::1]:4000".
  static std::optional<DatagramPlace> parse(const std::string& text);
};

/// The name of the interface that has `address`. Throws Error (not_found).
std::string interface_with(const std::string& address);
/// Bytes of an IP packet on it. Throws Error.
std::uint32_t mtu_of(const std::string& interface);

}  // namespace offload::worker
