#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/source/source.hpp"

namespace offload::net {

/// The address of a TCP peer in 18 bytes: an IPv6 address, or an IPv4 one mapped into it, and the
/// port. Another family, or none, is unknown. Nothing allocates.
class PeerAddress {
 public:
  PeerAddress() noexcept = default;
  /// From the result of accept4(2).
  explicit PeerAddress(const sockaddr_storage& address) noexcept;

  /// "10.0.0.1:4711", "[2001:db8::1]:4711", "of unknown address".
  struct Text {
    std::array<char, 64> characters{};
    std::size_t size = 0;
    operator std::string_view() const noexcept { return {characters.data(), size}; }
  };
  [[nodiscard]] Text text() const noexcept;

  [[nodiscard]] Source source() const noexcept { return source_of(ip_); }

 private:
  IpBytes ip_{};
  std::uint16_t port_ = 0;  ///< 0: unknown
};

}  // namespace offload::net
