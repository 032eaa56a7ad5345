#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
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
  explicit PeerAddress(const sockaddr_storage& address) noexcept : ip_(ip_bytes(address)) {
    if (address.ss_family == AF_INET) {
      port_ = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    } else if (address.ss_family == AF_INET6) {
      port_ = ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    }
  }

  /// "10.0.0.1:4711", "[2001:db8::1]:4711", "of unknown address".
  struct Text {
    std::array<char, 64> characters{};
    std::size_t size = 0;
    operator std::string_view() const noexcept { return {characters.data(), size}; }
  };
  [[nodiscard]] Text text() const noexcept {
    Text text;
    char* to = text.characters.data();
    char* const end = to + text.characters.size();
    const auto put = [&](std::string_view part) { to = std::copy(part.begin(), part.end(), to); };
    if (port_ == 0) {
      put("of unknown address");
    } else {
      std::array<char, INET6_ADDRSTRLEN> ip{};
      if (is_v4(ip_)) {
        put(::inet_ntop(AF_INET, ip_.data() + ip_.size() - sizeof(in_addr), ip.data(), ip.size()));
      } else {
        put("[");
        put(::inet_ntop(AF_INET6, ip_.data(), ip.data(), ip.size()));
        put("]");
      }
      put(":");
      to = std::to_chars(to, end, port_).ptr;
    }
    text.size = static_cast<std::size_t>(to - text.characters.data());
    return text;
  }

  [[nodiscard]] Source source() const noexcept { return source_of(ip_); }

 private:
  IpBytes ip_{};
  std::uint16_t port_ = 0;  ///< 0: unknown
};

}  // namespace offload::net
