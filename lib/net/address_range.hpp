#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "net/socket.hpp"

namespace offload::net {

/// The bytes of an IP address; of an IPv4 one mapped into IPv6 (RFC 4291 2.5.5.2), as a socket of
/// both families has it. All zero for an address of any other family.
using IpBytes = std::array<std::byte, 16>;
IpBytes ip_bytes(const SocketAddress& address) noexcept;

/// What one subscriber has of addresses: an IPv4 address itself, the first 64 bits of an IPv6 one.
IpBytes subscriber_of(const SocketAddress& address) noexcept;

/// A range of IP addresses in the notation of RFC 4632 and RFC 4291: "10.0.0.0/8", "fd00::/8", or
/// one address.
class AddressRange {
 public:
  /// Nothing for any other text; bits behind the prefix do not count.
  static std::optional<AddressRange> parse(const std::string& text);

  [[nodiscard]] bool contains(const SocketAddress& address) const noexcept;

 private:
  IpBytes prefix_{};
  unsigned bits_ = 0;  ///< of prefix_
};

}  // namespace offload::net
