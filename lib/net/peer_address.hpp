#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace offload::net {

/// The address of a TCP peer in 18 bytes: an IPv6 address, or an IPv4 one mapped into it, and the
/// port. Of another family, or none: unknown. Nothing allocates.
class PeerAddress {
 public:
  PeerAddress() noexcept = default;
  /// Of what accept4(2) filled in.
  explicit PeerAddress(const sockaddr_storage& address) noexcept;

  /// "10.0.0.1:4711", "[2001:db8::1]:4711", "of unknown address".
  struct Text {
    std::array<char, 64> characters{};
    std::size_t size = 0;
    operator std::string_view() const noexcept { return {characters.data(), size}; }
  };
  [[nodiscard]] Text text() const noexcept;

  /// What one owner has: an IPv4 address, or the /64 of an IPv6 one (RFC 6177: a site gets no less
  /// than that).
  using Network = std::array<std::uint8_t, 16>;
  [[nodiscard]] Network network() const noexcept;

 private:
  [[nodiscard]] bool is_v4() const noexcept;

  std::array<std::uint8_t, 16> ip_{};  ///< as in6_addr
  std::uint16_t port_ = 0;             ///< 0: unknown
};

}  // namespace offload::net
