#pragma once

#include <cstdint>

#include "kernels/packets/answers.hpp"
#include "kernels/packets/martian.hpp"
#include "kernels/slot_batch.hpp"

/// Requests in UDP datagrams (docs/reference/wire-protocol.md): a datagram's payload is
///   u64 sequence | u32 wire_size | u32 msg_id | u32 length (big endian) | `length` bytes
/// and that of its answer has the same sequence. A request is a stranger's: no length is believed.
namespace offload::kernels::packets {

inline constexpr std::uint32_t kDatagramSequence = 8;
inline constexpr std::uint32_t kDatagramHeader = kDatagramSequence + kFrameHeader;
inline constexpr std::uint32_t kRequestId = 4;  ///< protocol::MessageId::client_request
/// protocol::Refusal::worker_failed: of an answer that does not fit in one frame.
inline constexpr std::uint32_t kWorkerFailed = 8;

/// The kind of a frame.
enum class Datagram : std::uint32_t {
  malformed,  ///< no whole datagram with right checksums, or no request
  martian,    ///< from or to addresses that are not answered
  answered,
  refused,  ///< its answer does not fit, and another one says so
};

/// The answer to a frame.
struct DatagramAnswer {
  Datagram outcome = Datagram::malformed;
  FrameError error = FrameError::none;  ///< of a malformed one, if it is the frame that is wrong
  Martian martian = Martian::none;      ///< of a martian
  std::uint32_t length = 0;             ///< of the answer's frame
};

/// Calls add_bytes() with all lanes of a group; returns the sum, in each lane.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t add_bytes_together(const Group& group, std::uint32_t sum,
                                                     const std::uint8_t* bytes,
                                                     std::uint32_t length) {
  if (group.size() == 1) return add_bytes(sum, bytes, length);
  std::uint32_t own = group.lane() == 0 ? sum : 0;
  for (std::uint32_t i = 2 * group.lane(); i < length; i += 2 * group.size()) {
    own += add_bytes(0, bytes + i, length - i < 2 ? 1 : 2);
  }
  return group.reduce(own, [](std::uint32_t a, std::uint32_t b) { return a + b; });
}

namespace detail {

/// Parses a frame as far as its payload, and checks the UDP checksum.
template <class Group>
OFFLOAD_HOST_DEVICE Headers parse_datagram(const Group& group, const std::uint8_t* frame,
                                           std::uint32_t length) {
  Headers headers = parse_headers(frame, length);
  if (!headers.is_whole(kUdp)) return headers;
  const std::uint8_t* const udp = frame + headers.transport;
  if (load_16(udp + 6) == 0) {  // there is none, which IPv6 does not allow
    if (headers.ethertype != kIpv4) headers.error = FrameError::transport_checksum;
    return headers;
  }
  const std::uint32_t bytes = headers.end - headers.transport;
  const std::uint32_t sum =
      add_bytes_together(group, pseudo_header_sum(frame, headers, bytes), udp, bytes);
  if (checksum_of(sum) != 0) headers.error = FrameError::transport_checksum;
  return headers;
}

/// Returns whether the payload is a sequence and one whole request.
OFFLOAD_HOST_DEVICE inline bool is_request(const std::uint8_t* payload, std::uint32_t length) {
  if (length < kDatagramHeader) return false;
  const std::uint8_t* const frame = payload + kDatagramSequence;
  const std::uint32_t wire_size = load_32(frame);
  return wire_size == length - kDatagramSequence && load_32(frame + 4) == kRequestId &&
         load_32(frame + 8) == wire_size - kFrameHeader;
}

/// Turns the headers of a request, up to its sequence, into those of an answer from `ethernet` with
/// `content` bytes of frame after the sequence, except the UDP checksum. For one lane.
OFFLOAD_HOST_DEVICE inline void turn_headers(std::uint8_t* frame, Headers& headers,
                                             std::uint32_t content, const std::uint8_t* ethernet) {
  constexpr std::uint8_t kHops = 64;  // those that the request had left may not suffice
  headers.end = headers.payload + kDatagramSequence + content;
  swap_addresses(frame, headers);
  set_source(frame, ethernet);
  std::uint8_t* const ip = frame + headers.ip;
  frame[headers.hops()] = kHops;
  if (headers.ethertype == kIpv4) {
    store_16(ip + 2, headers.end - headers.ip);
    store_16(ip + 10, 0);
    store_16(ip + 10, checksum_of(add_bytes(0, ip, headers.transport - headers.ip)));
  } else {
    constexpr std::uint32_t kIpv6Header = 40;
    store_16(ip + 4, headers.end - headers.ip - kIpv6Header);
  }
  std::uint8_t* const udp = frame + headers.transport;
  swap_bytes(udp, udp + 2, 2);
  store_16(udp + 4, headers.end - headers.transport);
  store_16(udp + 6, 0);
}

}  // namespace detail

/// Lets `service` answer the request in the frame at `in` (`length` bytes, followed by kSlack
/// readable bytes), to a frame at `out` of at most `room` bytes, followed by kSlack writable bytes.
/// The two must not overlap. `mtu`: the maximum number of bytes of an IP packet. `host`: the host
/// that answers. Every lane of the group must call it, with the same arguments; each gets the
/// answer, which is complete on return.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE DatagramAnswer answer_datagram(const Group& group, const Service& service,
                                                   const std::uint8_t* in, std::uint32_t length,
                                                   std::uint8_t* out, std::uint32_t room,
                                                   std::uint32_t mtu, const HostAddresses& host) {
  Headers headers = detail::parse_datagram(group, in, length);
  if (!headers.is_whole(kUdp)) return {Datagram::malformed, headers.error};
  const Martian martian = martian_of(in, headers, host);
  if (martian != Martian::none) return {Datagram::martian, FrameError::none, martian};
  if (!detail::is_request(in + headers.payload, headers.payload_length())) return {};
  const Request request(in + headers.payload + kDatagramHeader,
                        headers.payload_length() - kDatagramHeader);
  const std::uint32_t begin = headers.payload + kDatagramHeader;
  const std::uint32_t most = room < headers.ip + mtu ? room : headers.ip + mtu;
  constexpr std::uint32_t kCode = 4;
  if (begin + kCode > most) return {};
  std::uint32_t response = service.response_length(request.length());
  const bool fits = response <= most - begin;
  if (!fits) response = kCode;

  for (std::uint32_t i = group.lane(); i < headers.payload + kDatagramSequence; i += group.size()) {
    out[i] = in[i];
  }
  group.sync();
  if (group.lane() == 0) {
    store_frame_header(out + headers.payload + kDatagramSequence,
                       fits ? FrameKind::response : FrameKind::error, response);
    detail::turn_headers(out, headers, kFrameHeader + response, host.ethernet);
  }
  headers.end = begin + response;
  if (fits) {
    service(group, request, UnalignedResponse(out + begin, response));
  } else if (group.lane() < kCode) {
    for (std::uint32_t i = group.lane(); i < kCode; i += group.size()) {
      out[begin + i] = static_cast<std::uint8_t>(i + 1 == kCode ? kWorkerFailed : 0);
    }
  }
  group.sync();
  // The checksum's own bytes are 0 so far, and so add nothing.
  std::uint8_t* const udp = out + headers.transport;
  const std::uint32_t bytes = headers.end - headers.transport;
  const std::uint32_t checksum =
      checksum_of(add_bytes_together(group, pseudo_header_sum(out, headers, bytes), udp, bytes));
  group.sync();  // all have read them
  if (group.lane() == 0) store_16(udp + 6, checksum == 0 ? 0xffff : checksum);
  group.sync();
  return {fits ? Datagram::answered : Datagram::refused, FrameError::none, Martian::none,
          headers.end};
}

}  // namespace offload::kernels::packets
