#pragma once

#include <cstdint>

#include "kernels/packets/checksum.hpp"
#include "kernels/platform.hpp"

/// Parses an Ethernet frame: VLAN tags (IEEE 802.1Q), IPv4 (RFC 791), IPv6 (RFC 8200), UDP, TCP,
/// ICMP. A frame is not trusted: no byte is read beyond its length, and each error has a name.
namespace offload::kernels::packets {

/// The first error found in a frame. A frame without an error may have a protocol that is not
/// parsed.
enum class FrameError : std::uint32_t {
  none,
  short_ethernet,  ///< shorter than its Ethernet header and VLAN tags
  too_many_tags,   ///< more than kMostTags VLAN tags
  short_ip,        ///< shorter than its IP header
  ip_version,      ///< the version is not what the Ethernet header says
  ip_header,       ///< IPv4: a header of less than 20 bytes
  ip_length,       ///< the IP length is below its header's, or beyond the frame
  ip_checksum,
  ipv6_extensions,  ///< an extension header beyond the packet, or more than kMostExtensions
  short_transport,  ///< shorter than its UDP, TCP or ICMP header
  udp_length,
  tcp_header,  ///< a header of less than 20 bytes, or beyond the packet
  transport_checksum,
};
inline constexpr std::uint32_t kFrameErrors = 13;

inline constexpr std::uint32_t kEthernetBytes = 14;
inline constexpr std::uint32_t kMostTags = 2;
inline constexpr std::uint32_t kMostExtensions = 8;
inline constexpr std::uint32_t kIpv4 = 0x0800;
inline constexpr std::uint32_t kIpv6 = 0x86dd;
/// Protocol numbers of IP (IANA).
inline constexpr std::uint32_t kIcmp = 1;
inline constexpr std::uint32_t kTcp = 6;
inline constexpr std::uint32_t kUdp = 17;
inline constexpr std::uint32_t kIcmpv6 = 58;

/// The fields found. Offsets are from the frame's first byte; fields that do not apply are 0.
struct Headers {
  FrameError error = FrameError::none;
  std::uint32_t ethertype = 0;  ///< behind the VLAN tags
  std::uint32_t vlan = 0;       ///< the first identifier of the tags that is not 0; 0: of no VLAN
  std::uint32_t ip = 0;         ///< where the IP header begins
  std::uint32_t protocol = 0;   ///< of IP, behind extension headers
  std::uint32_t transport = 0;  ///< where its header begins
  std::uint32_t payload = 0;    ///< what is behind that
  std::uint32_t end = 0;        ///< of the IP packet: an Ethernet frame may be padded
  std::uint32_t source_port = 0;
  std::uint32_t destination_port = 0;
  std::uint32_t tcp_flags = 0;
  bool is_fragment = false;  ///< not a whole packet: its transport is not looked into
  bool has_route = false;    ///< IPv6: a routing header says that it must be forwarded

  [[nodiscard]] OFFLOAD_HOST_DEVICE bool is_whole(std::uint32_t of) const {
    return error == FrameError::none && !is_fragment && protocol == of;
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t payload_length() const { return end - payload; }
  /// Returns the offset of the time to live, or of the hop limit, of an IP packet.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t hops() const {
    return ip + (ethertype == kIpv4 ? 8U : 7U);
  }
};

/// The sum of the pseudo header (RFC 768, RFC 8200 section 8.1), for `length` bytes from the
/// transport header on.
OFFLOAD_HOST_DEVICE inline std::uint32_t pseudo_header_sum(const std::uint8_t* frame,
                                                           const Headers& headers,
                                                           std::uint32_t length) {
  const bool is_v4 = headers.ethertype == kIpv4;
  const std::uint32_t addresses = headers.ip + (is_v4 ? 12U : 8U);
  return add_bytes(headers.protocol + length, frame + addresses, is_v4 ? 8U : 32U);
}

namespace detail {

OFFLOAD_HOST_DEVICE inline bool set_error(Headers& headers, FrameError error) {
  headers.error = error;
  return false;
}

OFFLOAD_HOST_DEVICE inline bool parse_ethernet(const std::uint8_t* frame, std::uint32_t length,
                                               Headers& headers) {
  std::uint32_t at = kEthernetBytes - 2;
  for (std::uint32_t tags = 0;; ++tags, at += 4) {
    if (length < at + 2) return set_error(headers, FrameError::short_ethernet);
    // The 12 low bits of a tag: its VLAN, or 0 for a priority alone.
    if (tags != 0 && headers.vlan == 0) headers.vlan = load_16(frame + at - 2) & 0xfff;
    headers.ethertype = load_16(frame + at);
    if (headers.ethertype != 0x8100 && headers.ethertype != 0x88a8) break;  // 802.1Q, 802.1ad
    if (tags == kMostTags) return set_error(headers, FrameError::too_many_tags);
  }
  if (headers.ethertype != kIpv4 && headers.ethertype != kIpv6) return false;
  headers.ip = at + 2;
  return true;
}

OFFLOAD_HOST_DEVICE inline bool parse_ipv4(const std::uint8_t* frame, std::uint32_t length,
                                           Headers& headers) {
  const std::uint8_t* const ip = frame + headers.ip;
  const std::uint32_t left = length - headers.ip;
  if (left < 20) return set_error(headers, FrameError::short_ip);
  if (ip[0] >> 4 != 4) return set_error(headers, FrameError::ip_version);
  const std::uint32_t header = (ip[0] & 15U) * 4;
  if (header < 20) return set_error(headers, FrameError::ip_header);
  const std::uint32_t total = load_16(ip + 2);
  if (total < header || total > left) return set_error(headers, FrameError::ip_length);
  if (checksum_of(add_bytes(0, ip, header)) != 0) {
    return set_error(headers, FrameError::ip_checksum);
  }
  headers.protocol = ip[9];
  headers.transport = headers.payload = headers.ip + header;
  headers.end = headers.ip + total;
  headers.is_fragment = (load_16(ip + 6) & 0x3fff) != 0;  // more fragments, or an offset
  return true;
}

/// Skips hop-by-hop, routing and destination options, which have a length field. A fragment header
/// ends the search; headers after authentication and encryption are not parsed.
OFFLOAD_HOST_DEVICE inline bool skip_extensions(const std::uint8_t* frame, Headers& headers) {
  for (std::uint32_t count = 0;; ++count) {
    const std::uint32_t kind = headers.protocol;
    if (kind != 0 && kind != 43 && kind != 60 && kind != 44) return true;
    if (count == kMostExtensions || headers.end - headers.transport < 8) {
      return set_error(headers, FrameError::ipv6_extensions);
    }
    const std::uint8_t* const header = frame + headers.transport;
    const std::uint32_t bytes = kind == 44 ? 8U : (header[1] + 1U) * 8;
    if (bytes > headers.end - headers.transport) {
      return set_error(headers, FrameError::ipv6_extensions);
    }
    headers.protocol = header[0];
    headers.transport = headers.payload = headers.transport + bytes;
    // One that is a whole packet all the same (RFC 6946) is taken for a fragment too.
    if (kind == 44) headers.is_fragment = true;
    if (kind == 43 && header[3] != 0) headers.has_route = true;
    if (headers.is_fragment) return true;
  }
}

OFFLOAD_HOST_DEVICE inline bool parse_ipv6(const std::uint8_t* frame, std::uint32_t length,
                                           Headers& headers) {
  const std::uint8_t* const ip = frame + headers.ip;
  const std::uint32_t left = length - headers.ip;
  if (left < 40) return set_error(headers, FrameError::short_ip);
  if (ip[0] >> 4 != 6) return set_error(headers, FrameError::ip_version);
  const std::uint32_t bytes = load_16(ip + 4);
  if (bytes > left - 40) return set_error(headers, FrameError::ip_length);
  headers.protocol = ip[6];
  headers.transport = headers.payload = headers.ip + 40;
  headers.end = headers.transport + bytes;
  return skip_extensions(frame, headers);
}

OFFLOAD_HOST_DEVICE inline bool parse_udp(const std::uint8_t* udp, std::uint32_t length,
                                          Headers& headers) {
  if (length < 8) return set_error(headers, FrameError::short_transport);
  if (load_16(udp + 4) < 8 || load_16(udp + 4) > length) {
    return set_error(headers, FrameError::udp_length);
  }
  headers.end = headers.transport + load_16(udp + 4);
  headers.payload = headers.transport + 8;
  return true;
}

OFFLOAD_HOST_DEVICE inline bool parse_tcp(const std::uint8_t* tcp, std::uint32_t length,
                                          Headers& headers) {
  if (length < 20) return set_error(headers, FrameError::short_transport);
  const std::uint32_t header = (tcp[12] >> 4) * 4U;
  if (header < 20 || header > length) return set_error(headers, FrameError::tcp_header);
  headers.tcp_flags = tcp[13];
  headers.payload = headers.transport + header;
  return true;
}

OFFLOAD_HOST_DEVICE inline void parse_transport(const std::uint8_t* frame, Headers& headers) {
  const std::uint8_t* const transport = frame + headers.transport;
  const std::uint32_t protocol = headers.protocol;
  const std::uint32_t length = headers.end - headers.transport;
  const bool is_v4 = headers.ethertype == kIpv4;
  if (protocol == kUdp) {
    if (!parse_udp(transport, length, headers)) return;
  } else if (protocol == kTcp) {
    if (!parse_tcp(transport, length, headers)) return;
  } else if (protocol == (is_v4 ? kIcmp : kIcmpv6)) {
    if (length < 8) {
      set_error(headers, FrameError::short_transport);
      return;
    }
    headers.payload = headers.transport + 8;
  } else {
    return;
  }
  if (protocol == kUdp || protocol == kTcp) {
    headers.source_port = load_16(transport);
    headers.destination_port = load_16(transport + 2);
  }
}

}  // namespace detail

/// Reads a frame's headers, and checks lengths and the IPv4 header's checksum.
OFFLOAD_HOST_DEVICE inline Headers parse_headers(const std::uint8_t* frame, std::uint32_t length) {
  Headers headers;
  if (!detail::parse_ethernet(frame, length, headers)) return headers;
  const bool parsed = headers.ethertype == kIpv4 ? detail::parse_ipv4(frame, length, headers)
                                                 : detail::parse_ipv6(frame, length, headers);
  if (parsed && !headers.is_fragment) detail::parse_transport(frame, headers);
  return headers;
}

/// Returns whether a whole packet's UDP, TCP or ICMP checksum is right; others have none. A UDP
/// datagram over IPv4 may be without (RFC 768).
OFFLOAD_HOST_DEVICE inline bool transport_checksum_is_right(const std::uint8_t* frame,
                                                            const Headers& headers) {
  const std::uint8_t* const transport = frame + headers.transport;
  const std::uint32_t length = headers.end - headers.transport;
  const bool is_v4 = headers.ethertype == kIpv4;
  if (headers.is_whole(kUdp) && load_16(transport + 6) == 0) return is_v4;
  const bool has_pseudo_header =
      headers.is_whole(kUdp) || headers.is_whole(kTcp) || (headers.is_whole(kIcmpv6) && !is_v4);
  if (!has_pseudo_header && !(headers.is_whole(kIcmp) && is_v4)) return true;
  const std::uint32_t sum = has_pseudo_header ? pseudo_header_sum(frame, headers, length) : 0;
  return checksum_of(add_bytes(sum, transport, length)) == 0;
}

/// parse_headers(), and the transport's checksum.
OFFLOAD_HOST_DEVICE inline Headers parse_frame(const std::uint8_t* frame, std::uint32_t length) {
  Headers headers = parse_headers(frame, length);
  if (headers.error == FrameError::none && !transport_checksum_is_right(frame, headers)) {
    headers.error = FrameError::transport_checksum;
  }
  return headers;
}

}  // namespace offload::kernels::packets
