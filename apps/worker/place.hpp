#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/interfaces.hpp"

namespace offload::worker {

/// The address at which requests arrive as datagrams.
struct DatagramPlace {
  std::string interface;  ///< empty: that which has the address
  std::string address;    ///< IPv4 or IPv6; empty: all of the interface's
  std::uint16_t port = 0;

  /// Parses "eth1:4000", "10.0.0.1:4000", "[fd00::1]:4000".
  static std::optional<DatagramPlace> parse(const std::string& text);
};

/// The Ethernet interface that it names, or that has its address. Throws Error (not_found).
device::Interface interface_of(const DatagramPlace& place);

}  // namespace offload::worker
