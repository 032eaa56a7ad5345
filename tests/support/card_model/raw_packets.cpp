#include <algorithm>

#include "kernels/packet/answers.hpp"
#include "kernels/rdma/ethernet.hpp"
#include "kernels/rdma/wait.hpp"
#include "tests/support/card_model/card.hpp"

/// The wire between queue pairs for raw packets, and what a card knows of Ethernet.
namespace offload::rdma::model {
namespace {

namespace packet = kernels::packet;
using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::LocalBuffer;

/// What a frame has at most: jumbo frames with their header and two VLAN tags.
constexpr std::size_t kMostFrame = 9000 + 22;

std::uint8_t* bytes_of(std::span<std::byte> frame) {
  return reinterpret_cast<std::uint8_t*>(frame.data());
}

/// Writes the checksums that an entry asks for; what has none stays as it is.
void write_checksums(std::span<std::byte> frame, std::uint8_t wanted) {
  std::uint8_t* const bytes = bytes_of(frame);
  const auto length = static_cast<std::uint32_t>(frame.size());
  packet::Headers headers = packet::parse_headers(bytes, length);
  // Of a header that is whole, as its checksum alone is found wrong.
  if ((wanted & kernels::rdma::kIpChecksum) != 0 && headers.ethertype == packet::kIpv4 &&
      (headers.error == packet::FrameError::none ||
       headers.error == packet::FrameError::ip_checksum)) {
    std::uint8_t* const ip = bytes + headers.ip;
    packet::store_16(ip + 10, 0);
    packet::store_16(ip + 10, packet::checksum_of(packet::add_bytes(0, ip, (ip[0] & 15U) * 4U)));
    headers = packet::parse_headers(bytes, length);
  }
  if ((wanted & kernels::rdma::kTransportChecksum) == 0) return;
  if (headers.is_whole(packet::kUdp)) packet::write_udp_checksum(bytes, headers);
  if (headers.is_whole(packet::kTcp)) {
    std::uint8_t* const tcp = bytes + headers.transport;
    const std::uint32_t size = headers.end - headers.transport;
    packet::store_16(tcp + 16, 0);
    const std::uint32_t sum = packet::pseudo_header_sum(bytes, headers, size);
    packet::store_16(tcp + 16, packet::checksum_of(packet::add_bytes(sum, tcp, size)));
  }
}

/// Which checksums of a frame are there and right.
std::uint32_t checked(std::span<const std::byte> frame) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
  const packet::Headers headers =
      packet::parse_frame(bytes, static_cast<std::uint32_t>(frame.size()));
  const bool has_ip = headers.ethertype == packet::kIpv4 || headers.ethertype == packet::kIpv6;
  const bool ip_right = has_ip && (headers.error == packet::FrameError::none ||
                                   headers.error >= packet::FrameError::short_transport);
  const bool transport_right = headers.is_whole(packet::kUdp) || headers.is_whole(packet::kTcp);
  return kernels::rdma::ethernet_word(ip_right, transport_right);
}

}  // namespace

Card::Result Card::send_frame(QueuePair& pair, const Entry& entry, Syndrome& syndrome) {
  syndrome = Syndrome::local_queue_operation;
  if (const auto why = gather(entry, message_); why != Syndrome::none) {
    syndrome = why;
    return Result::failed;
  }
  if (entry.work.inline_length < std::min<std::size_t>(pair.least_inline, message_.size())) {
    return Result::failed;
  }
  if (message_.size() < kernels::rdma::kLeastFrame || message_.size() > kMostFrame) {
    syndrome = Syndrome::local_length;
    return Result::failed;
  }
  write_checksums(message_, entry.checksums);
  // A wire without another end takes all.
  if (pair.peer == nullptr || pair.peer->in_error) return Result::done;
  return deliver_frame(*pair.peer, message_);
}

/// To the oldest receive. What does not fit there ends the receiver, and not who sent it.
Card::Result Card::deliver_frame(QueuePair& peer, std::span<const std::byte> frame) {
  if (peer.receives.look() == 0) {
    note_fault(peer);
    if (!peer.in_error && !fail_without_receive_) return Result::waits;
    ++dropped_;
    return Result::done;
  }
  Completion completion{};
  completion.kind = CqeKind::received_send;
  completion.counter = static_cast<std::uint16_t>(peer.receives.next());
  completion.queue = peer.number;
  completion.byte_count = static_cast<std::uint32_t>(frame.size());
  completion.ethernet = checked(frame);
  completion.time = kernels::rdma::now_ns();
  const LocalBuffer buffer = peer.receives.read();
  peer.receives.retire(1);
  const auto room = find(buffer.address, buffer.length, buffer.lkey);
  if (frame.size() > buffer.length || room.size() != buffer.length) {
    completion.kind = CqeKind::receive_error;
    completion.syndrome =
        frame.size() > buffer.length ? Syndrome::local_length : Syndrome::local_protection;
    peer.in_error = true;
  } else {
    copy(frame, room);
  }
  complete_came(peer, completion);
  return Result::done;
}

}  // namespace offload::rdma::model
