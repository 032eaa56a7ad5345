#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offload::net {

/// The bytes of an IP address; of an IPv4 one mapped into IPv6 (RFC 4291 2.5.5.2), as a socket of
/// both families has it. All zero for an address of any other family.
using IpBytes = std::array<std::byte, 16>;
IpBytes ip_bytes(const sockaddr_storage& address) noexcept;
bool is_v4(const IpBytes& address) noexcept;

/// The first `count` bits of an address; the others are zero.
IpBytes first_bits(const IpBytes& address, unsigned count) noexcept;

/// The source of a connection, to which limits apply: an IPv4 address, or the first 64 bits of an
/// IPv6 one, as a site gets no less than that (RFC 6177). All local peers are one source.
using Source = IpBytes;
Source source_of(const IpBytes& address) noexcept;
inline Source source_of(const sockaddr_storage& address) noexcept {
  return source_of(ip_bytes(address));
}

/// The entries for connections of untrusted peers.
enum class Door : std::uint8_t { http, clients, tls, control };
inline constexpr std::array<const char*, 4> kDoors{"http", "clients", "tls", "control"};

/// Connections of this process that were refused or ended because of how many their source had, by
/// door. Any thread.
class LimitedSources {
 public:
  void add(Door door) noexcept { of(door).fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t count(Door door) const noexcept {
    return counts_[static_cast<std::size_t>(door)].load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t>& of(Door door) noexcept {
    return counts_[static_cast<std::size_t>(door)];
  }
  std::array<std::atomic<std::uint64_t>, kDoors.size()> counts_{};  ///< relaxed: they order nothing
};
inline LimitedSources limited_sources;

}  // namespace offload::net
