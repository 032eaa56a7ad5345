#pragma once

#include <cstdint>

#include "kernels/packets/headers.hpp"

/// The well-formed frames that a host does not answer: Linux's stack drops them before a socket
/// sees them (RFC 1122, sections 3.2.1.3 and 3.3.6), or cannot answer.
namespace offload::kernels::packets {

/// Why a frame is not answered; the first reason found.
enum class Martian : std::uint32_t {
  none,
  ethernet,     ///< to another station, or not from another station
  vlan,         ///< of a VLAN, which is another interface
  destination,  ///< not the address of one host, or behind a source route
  source,       ///< not the address of another host
  source_port,  ///< 0, which nothing can be sent to
  loop,         ///< of an echo only: its answer might be answered too, and so on without end
};
inline constexpr std::uint32_t kMartians = 7;

/// The addresses of a host, and the Ethernet address of one of its interfaces. In host order.
struct HostAddresses {
  static constexpr std::uint32_t kMost = 64;

  std::uint8_t ethernet[6];
  std::uint32_t v4_count;
  std::uint32_t broadcast_count;
  std::uint32_t v6_count;
  std::uint32_t v4[kMost];          ///< of all interfaces
  std::uint32_t broadcasts[kMost];  ///< of the subnets of all interfaces
  std::uint32_t v6[kMost][4];       ///< of all interfaces
};

namespace detail {

OFFLOAD_HOST_DEVICE inline bool is_group(const std::uint8_t* ethernet) {
  return (ethernet[0] & 1U) != 0;
}

OFFLOAD_HOST_DEVICE inline bool is_equal(const std::uint8_t* one, const std::uint8_t* other) {
  std::uint32_t differs = 0;
  for (std::uint32_t i = 0; i < 6; ++i) differs |= std::uint32_t{one[i]} ^ other[i];
  return differs == 0;
}

/// Looks at all entries, so that a GPU has many loads under way at once.
OFFLOAD_HOST_DEVICE inline bool is_in(std::uint32_t address, const std::uint32_t* list,
                                      std::uint32_t count) {
  bool found = false;
  for (std::uint32_t i = 0; i < count; ++i) found |= list[i] == address;
  return found;
}

OFFLOAD_HOST_DEVICE inline bool is_unicast_v4(std::uint32_t address, const HostAddresses& host) {
  const std::uint32_t net = address >> 24;
  return address != 0 && net != 127 && net >> 4 != 14 && address != 0xffff'ffff &&
         !is_in(address, host.broadcasts, host.broadcast_count);
}

/// Returns whether options have a source route (RFC 791), or are malformed: Linux drops both.
OFFLOAD_HOST_DEVICE inline bool has_source_route(const std::uint8_t* ip, std::uint32_t header) {
  for (std::uint32_t at = 20; at < header && ip[at] != 0;) {
    if (ip[at] == 1) {  // no operation, a single byte
      ++at;
      continue;
    }
    const std::uint32_t length = at + 1 < header ? ip[at + 1] : 0U;
    if (ip[at] == 131 || ip[at] == 137 || length < 2 || length > header - at) return true;
    at += length;
  }
  return false;
}

OFFLOAD_HOST_DEVICE inline Martian martian_v4(const std::uint8_t* ip, std::uint32_t header,
                                              const HostAddresses& host) {
  if (!is_unicast_v4(load_32(ip + 16), host) || has_source_route(ip, header)) {
    return Martian::destination;
  }
  const std::uint32_t source = load_32(ip + 12);
  const bool is_other = is_unicast_v4(source, host) && !is_in(source, host.v4, host.v4_count);
  return is_other ? Martian::none : Martian::source;
}

/// Returns whether it is not multicast, "::", "::1", or an IPv4 address in the form of IPv6.
OFFLOAD_HOST_DEVICE inline bool is_unicast_v6(const std::uint32_t (&address)[4]) {
  if (address[0] >> 24 == 0xff) return false;
  if ((address[0] | address[1]) != 0) return true;
  return address[2] != 0xffff && (address[2] != 0 || address[3] > 1);
}

OFFLOAD_HOST_DEVICE inline Martian martian_v6(const std::uint8_t* ip, const HostAddresses& host) {
  std::uint32_t source[4];
  std::uint32_t destination[4];
  for (std::uint32_t i = 0; i < 4; ++i) {
    source[i] = load_32(ip + 8 + 4 * i);
    destination[i] = load_32(ip + 24 + 4 * i);
  }
  if (!is_unicast_v6(destination)) return Martian::destination;
  bool is_other = is_unicast_v6(source);
  for (std::uint32_t i = 0; i < host.v6_count; ++i) {
    std::uint32_t differs = 0;
    for (std::uint32_t k = 0; k < 4; ++k) differs |= source[k] ^ host.v6[i][k];
    is_other &= differs != 0;
  }
  return is_other ? Martian::none : Martian::source;
}

}  // namespace detail

/// Returns why `host` does not answer a frame whose `headers` are right. Does not check whether the
/// destination is an address of the host: rules decide which frames get here.
OFFLOAD_HOST_DEVICE inline Martian martian_of(const std::uint8_t* frame, const Headers& headers,
                                              const HostAddresses& host) {
  const std::uint8_t* const source = frame + 6;
  // Linux takes a unicast datagram from an Ethernet broadcast or multicast.
  if ((!detail::is_group(frame) && !detail::is_equal(frame, host.ethernet)) ||
      detail::is_group(source) || detail::is_equal(source, host.ethernet)) {
    return Martian::ethernet;
  }
  if (headers.vlan != 0) return Martian::vlan;
  const std::uint8_t* const ip = frame + headers.ip;
  if (headers.has_route) return Martian::destination;
  const Martian found = headers.ethertype == kIpv4 ? detail::martian_v4(ip, (ip[0] & 15U) * 4, host)
                                                   : detail::martian_v6(ip, host);
  if (found != Martian::none) return found;
  return headers.is_whole(kUdp) && headers.source_port == 0 ? Martian::source_port : Martian::none;
}

/// Returns whether the echo of a UDP datagram might be answered by another echo, whose answer is
/// echoed again. It comes from the port that it goes to; or from one of the ports below 1024, where
/// services answer whatever comes (RFC 862 to 868, among others); or it has used up its hops, of
/// which each echo takes one: so any two echoes end.
OFFLOAD_HOST_DEVICE inline bool may_loop(const std::uint8_t* frame, const Headers& headers) {
  constexpr std::uint32_t kReservedPorts = 1024;
  return headers.source_port == headers.destination_port || headers.source_port < kReservedPorts ||
         frame[headers.hops()] < 2;
}

}  // namespace offload::kernels::packets
