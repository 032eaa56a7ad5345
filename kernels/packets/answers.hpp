#pragma once

#include <cstdint>

#include "kernels/packets/headers.hpp"

/// Frames turned into answers, in place: of the same length, from the one who was asked to the one
/// who did.
namespace offload::kernels::packets {

OFFLOAD_HOST_DEVICE inline void swap_bytes(std::uint8_t* one, std::uint8_t* other,
                                           std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t byte = one[i];
    one[i] = other[i];
    other[i] = byte;
  }
}

/// Swaps the addresses of Ethernet and IP; the IPv4 header's checksum stays right, as a sum does
/// not depend on the order.
OFFLOAD_HOST_DEVICE inline void swap_addresses(std::uint8_t* frame, const Headers& headers) {
  swap_bytes(frame, frame + 6, 6);
  std::uint8_t* const ip = frame + headers.ip;
  if (headers.ethertype == kIpv4) {
    swap_bytes(ip + 12, ip + 16, 4);
  } else {
    swap_bytes(ip + 8, ip + 24, 16);
  }
}

/// Sets the Ethernet address that a frame comes from: that of an answer to an Ethernet broadcast
/// would be the broadcast.
OFFLOAD_HOST_DEVICE inline void set_source(std::uint8_t* frame, const std::uint8_t* ethernet) {
  for (std::uint32_t i = 0; i < 6; ++i) frame[6 + i] = ethernet[i];
}

/// Recomputes the UDP checksum. 0 would mean that there is no checksum, so it is sent as 0xffff.
OFFLOAD_HOST_DEVICE inline void write_udp_checksum(std::uint8_t* frame, const Headers& headers) {
  std::uint8_t* const udp = frame + headers.transport;
  const std::uint32_t length = headers.end - headers.transport;
  store_16(udp + 6, 0);
  const std::uint32_t checksum =
      checksum_of(add_bytes(pseudo_header_sum(frame, headers, length), udp, length));
  store_16(udp + 6, checksum == 0 ? 0xffff : checksum);
}

/// Recomputes the TCP checksum.
OFFLOAD_HOST_DEVICE inline void write_tcp_checksum(std::uint8_t* frame, const Headers& headers) {
  std::uint8_t* const tcp = frame + headers.transport;
  const std::uint32_t length = headers.end - headers.transport;
  store_16(tcp + 16, 0);
  store_16(tcp + 16,
           checksum_of(add_bytes(pseudo_header_sum(frame, headers, length), tcp, length)));
}

/// Decrements the remaining hops of an IP packet, if it has any.
OFFLOAD_HOST_DEVICE inline void take_hop(std::uint8_t* frame, const Headers& headers) {
  std::uint8_t& hops = frame[headers.hops()];
  if (hops == 0) return;
  --hops;
  if (headers.ethertype != kIpv4) return;
  std::uint8_t* const ip = frame + headers.ip;
  store_16(ip + 10, 0);
  store_16(ip + 10, checksum_of(add_bytes(0, ip, headers.transport - headers.ip)));
}

/// A UDP datagram to port `port` (0: to any) becomes its echo, with the payload's bytes in reverse
/// order and one hop less. False: it is no such, and unchanged.
OFFLOAD_HOST_DEVICE inline bool make_udp_echo(std::uint8_t* frame, const Headers& headers,
                                              std::uint32_t port) {
  if (!headers.is_whole(kUdp)) return false;
  if (port != 0 && headers.destination_port != port) return false;
  swap_addresses(frame, headers);
  take_hop(frame, headers);
  std::uint8_t* const udp = frame + headers.transport;
  swap_bytes(udp, udp + 2, 2);
  std::uint8_t* const payload = frame + headers.payload;
  const std::uint32_t length = headers.payload_length();
  for (std::uint32_t i = 0; i < length / 2; ++i) {
    const std::uint8_t byte = payload[i];
    payload[i] = payload[length - 1 - i];
    payload[length - 1 - i] = byte;
  }
  write_udp_checksum(frame, headers);
  return true;
}

/// An ICMP echo request, of IPv4 or IPv6, becomes the reply. False: it is no such, and unchanged.
OFFLOAD_HOST_DEVICE inline bool make_ping_reply(std::uint8_t* frame, const Headers& headers) {
  const bool is_v4 = headers.ethertype == kIpv4;
  if (!headers.is_whole(is_v4 ? kIcmp : kIcmpv6)) return false;
  std::uint8_t* const icmp = frame + headers.transport;
  const std::uint32_t request = is_v4 ? 8U : 128U;
  if (icmp[0] != request || icmp[1] != 0) return false;
  swap_addresses(frame, headers);
  icmp[0] = static_cast<std::uint8_t>(is_v4 ? 0U : 129U);
  // Anew, from all bytes: what came was checked before.
  const std::uint32_t length = headers.end - headers.transport;
  store_16(icmp + 2, 0);
  const std::uint32_t sum = is_v4 ? 0 : pseudo_header_sum(frame, headers, length);
  store_16(icmp + 2, checksum_of(add_bytes(sum, icmp, length)));
  return true;
}

}  // namespace offload::kernels::packets
