#include <algorithm>

#include "kernels/packets/answers.hpp"
#include "kernels/rdma/ethernet.hpp"
#include "kernels/rdma/wait.hpp"
#include "softcard/card/card.hpp"

/// The wire between queue pairs for raw packets, and a card's knowledge of Ethernet.
namespace offload::rdma::model {
namespace {

namespace packets = kernels::packets;
using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::LocalBuffer;

/// The maximum length of a frame: jumbo frames with their header and two VLAN tags.
constexpr std::size_t kMostFrame = 9000 + 22;

std::uint8_t* bytes_of(std::span<std::byte> frame) {
  return reinterpret_cast<std::uint8_t*>(frame.data());
}

/// Writes the checksums that an entry asks for; a frame without such a header is unchanged.
void write_checksums(std::span<std::byte> frame, std::uint8_t wanted) {
  std::uint8_t* const bytes = bytes_of(frame);
  const auto length = static_cast<std::uint32_t>(frame.size());
  packets::Headers headers = packets::parse_headers(bytes, length);
  // The header must be whole: at most its checksum may be wrong.
  if ((wanted & kernels::rdma::kIpChecksum) != 0 && headers.ethertype == packets::kIpv4 &&
      (headers.error == packets::FrameError::none ||
       headers.error == packets::FrameError::ip_checksum)) {
    std::uint8_t* const ip = bytes + headers.ip;
    packets::store_16(ip + 10, 0);
    packets::store_16(ip + 10, packets::checksum_of(packets::add_bytes(0, ip, (ip[0] & 15U) * 4U)));
    headers = packets::parse_headers(bytes, length);
  }
  if ((wanted & kernels::rdma::kTransportChecksum) == 0) return;
  if (headers.is_whole(packets::kUdp)) packets::write_udp_checksum(bytes, headers);
  if (headers.is_whole(packets::kTcp)) {
    std::uint8_t* const tcp = bytes + headers.transport;
    const std::uint32_t size = headers.end - headers.transport;
    packets::store_16(tcp + 16, 0);
    const std::uint32_t sum = packets::pseudo_header_sum(bytes, headers, size);
    packets::store_16(tcp + 16, packets::checksum_of(packets::add_bytes(sum, tcp, size)));
  }
}

/// Returns which checksums of a frame are there and right.
std::uint32_t checked(std::span<const std::byte> frame) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
  const packets::Headers headers =
      packets::parse_frame(bytes, static_cast<std::uint32_t>(frame.size()));
  const bool has_ip = headers.ethertype == packets::kIpv4 || headers.ethertype == packets::kIpv6;
  const bool ip_right = has_ip && (headers.error == packets::FrameError::none ||
                                   headers.error >= packets::FrameError::short_transport);
  const bool transport_right = headers.is_whole(packets::kUdp) || headers.is_whole(packets::kTcp);
  return kernels::rdma::ethernet_word(ip_right, transport_right);
}

}  // namespace

Card::Result Card::send_frame(QueuePair& pair, const Entry& entry, Syndrome& syndrome) {
  syndrome = Syndrome::local_queue_operation;
  if (const auto why = gather(pair, entry, message_); why != Syndrome::none) {
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
  // A wire without another end drops all frames.
  const auto peer = pairs_.find(pair.peer);
  if (peer == pairs_.end() || peer->second.state == State::error) return Result::done;
  return deliver_frame(peer->second, message_);
}

/// Copies a frame to the oldest receive. If it does not fit, the receiver fails, not the sender.
Card::Result Card::deliver_frame(QueuePair& peer, std::span<const std::byte> frame) {
  if (peer.receives->look() == 0) {
    note_fault(peer);
    if (peer.state != State::error && !fail_without_receive_) return Result::waits;
    ++dropped_;
    return Result::done;
  }
  Completion completion{};
  completion.kind = CqeKind::received_send;
  const Receive receive = peer.receives->take();
  completion.counter = receive.counter;
  completion.queue = peer.number;
  completion.byte_count = static_cast<std::uint32_t>(frame.size());
  completion.ethernet = checked(frame);
  completion.time = kernels::rdma::now_ns();
  const Syndrome why = frame.size() > receive.length() ? Syndrome::local_length
                                                       : scatter(peer, receive.all(), 0, frame);
  if (why != Syndrome::none) {
    completion.kind = CqeKind::receive_error;
    completion.syndrome = why;
  }
  complete(peer, *peer.came, completion, false);
  if (why != Syndrome::none) enter_error(peer, PairEvent::fatal);
  return Result::done;
}

}  // namespace offload::rdma::model
