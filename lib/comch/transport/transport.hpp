#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comch/address.hpp"
#include "comch/transport/control_connection.hpp"
#include "core/error.hpp"

namespace offload::comch {

/// A kind of network that server and worker can meet on. A new one is a folder beside this file, a
/// line in the table of schemes.cpp, and a file of tests/comch/conformance, whose example_transport
/// is one to copy.
struct Transport {
  std::string_view scheme;  ///< of its addresses: what comes before the first colon
  std::string_view form;    ///< of the rest, for people: "HOST:PORT"
  /// Parses that rest into `address`; returns what is wrong with it, nothing if it was taken.
  std::string (*parse)(std::string_view text, Address& address);
  /// Connects to a server. Throws Error: not_connected, not_found, timed_out or again while there
  /// is none, not_permitted if it may not be trusted, not_supported without the hardware.
  std::unique_ptr<ControlConnection> (*connect)(const Address& address);
  /// Throws Error: in_use where a server lives, not_permitted without a key where one is taken,
  /// not_supported without the hardware.
  std::unique_ptr<Listener> (*listen)(const Address& address);
  /// True: its connections are LocalControlConnections, and the channels are shared memory. False:
  /// they are NetworkControlConnections, which prove the key by TLS, and a data connection carries
  /// each channel.
  bool shares_memory;

  /// "tcp:HOST:PORT"
  [[nodiscard]] std::string example() const {
    return std::string(scheme) + ":" + std::string(form);
  }
};

/// All there are: the table of schemes.cpp.
std::span<const Transport> transports() noexcept;

/// Null for an unknown scheme.
inline const Transport* find_transport(std::string_view scheme) noexcept {
  const auto found = std::ranges::find(transports(), scheme, &Transport::scheme);
  return found != transports().end() ? &*found : nullptr;
}

/// Throws Error (invalid_value) for an unknown scheme.
inline const Transport& transport_of(std::string_view scheme) {
  if (const Transport* const transport = find_transport(scheme)) return *transport;
  throw core::Error(core::ErrorCode::invalid_value,
                    "no transport has the scheme '" + std::string(scheme) + "'");
}

/// Connects to a server as the address's transport does. Throws Error: invalid_value for an unknown
/// scheme, and as Transport::connect.
inline std::unique_ptr<ControlConnection> connect_to(const Address& address) {
  return transport_of(address.scheme).connect(address);
}

}  // namespace offload::comch
