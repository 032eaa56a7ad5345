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

/// A kind of network that connects server and worker. A new one needs a folder beside this file, a
/// line in the table of schemes.cpp, and a file in tests/comch/conformance, which has an example to
/// copy, example_transport.
struct Transport {
  std::string_view scheme;  ///< of its addresses: the part before the first colon
  std::string_view form;    ///< of the rest, for messages: "HOST:PORT"
  /// Parses the rest into `address`; returns an error message, which is empty on success.
  std::string (*parse)(std::string_view text, Address& address);
  /// Connects to a server. Throws Error: not_connected, not_found, timed_out or again while there
  /// is none, not_permitted for one that is not trusted, not_supported without the hardware.
  std::unique_ptr<ControlConnection> (*connect)(const Address& address);
  /// Throws Error: in_use if another server runs, not_permitted without a required key,
  /// not_supported without the hardware.
  std::unique_ptr<Listener> (*listen)(const Address& address);
  /// True: connections are LocalControlConnections, and channels are shared memory. False: they are
  /// NetworkControlConnections, which prove the key by TLS, and a data connection carries each
  /// channel.
  bool shares_memory;

  /// Returns "tcp:HOST:PORT".
  [[nodiscard]] std::string example() const {
    return std::string(scheme) + ":" + std::string(form);
  }
};

/// Returns all transports: the table of schemes.cpp.
std::span<const Transport> transports() noexcept;

/// Returns the transport of a scheme, null for an unknown one.
inline const Transport* find_transport(std::string_view scheme) noexcept {
  const auto found = std::ranges::find(transports(), scheme, &Transport::scheme);
  return found != transports().end() ? &*found : nullptr;
}

/// Returns the transport of a scheme. Throws Error (invalid_value) for an unknown one.
inline const Transport& transport_of(std::string_view scheme) {
  if (const Transport* const transport = find_transport(scheme)) return *transport;
  throw core::Error(core::ErrorCode::invalid_value,
                    "no transport has the scheme '" + std::string(scheme) + "'");
}

/// Connects to a server with the transport of `address`. Throws Error: invalid_value for an unknown
/// scheme, and as Transport::connect does.
inline std::unique_ptr<ControlConnection> connect_to(const Address& address) {
  return transport_of(address.scheme).connect(address);
}

}  // namespace offload::comch
