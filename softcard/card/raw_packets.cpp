#include <algorithm>

#include "kernels/packets/answers.hpp"
#include "kernels/rdma/ethernet.hpp"
#include "kernels/rdma/wait.hpp"
#include "softcard/card/card.hpp"

/// The wire between queue pairs for raw packets, the way of a frame to its queue, and a card's
/// knowledge of Ethernet.
namespace offload::rdma::model {
namespace {

namespace packets = kernels::packets;
using kernels::rdma::Completion;
using kernels::rdma::CqeKind;

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

/// Returns the field of a completion that names the IP header (MLX5_CQE_L3_HDR_TYPE_*). libmlx5
/// reports checksums as right only where it names IPv4.
std::uint32_t type_of(const packets::Headers& headers) {
  constexpr std::uint32_t kIpv6Type = 1U << 18;
  constexpr std::uint32_t kIpv4Type = 2U << 18;
  if (headers.ethertype == packets::kIpv4) return kIpv4Type;
  return headers.ethertype == packets::kIpv6 ? kIpv6Type : 0;
}

/// Returns which checksums of a frame are there and right, and which IP header it has.
std::uint32_t checked(std::span<const std::byte> frame) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
  const packets::Headers headers =
      packets::parse_frame(bytes, static_cast<std::uint32_t>(frame.size()));
  const bool has_ip = headers.ethertype == packets::kIpv4 || headers.ethertype == packets::kIpv6;
  const bool ip_right = has_ip && (headers.error == packets::FrameError::none ||
                                   headers.error >= packets::FrameError::short_transport);
  const bool transport_right = headers.is_whole(packets::kUdp) || headers.is_whole(packets::kTcp);
  return kernels::rdma::ethernet_word(ip_right, transport_right) | type_of(headers);
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
  if (pair.is_owned) {
    transmit(pair, message_);
    return Result::done;
  }
  // A wire without another end drops all frames.
  const auto peer = pairs_.find(pair.peer);
  if (peer == pairs_.end() || peer->second.state == State::error) return Result::done;
  return deliver_frame(peer->second, message_);
}

/// Sends a frame as an Ethernet port does: one for the port itself comes back, others go to the
/// wire, and one for a group of ports does both.
void Card::transmit(const QueuePair& from, std::span<const std::byte> frame) {
  const auto* const destination = reinterpret_cast<const std::uint8_t*>(frame.data());
  const bool is_for_group = (destination[0] & 1U) != 0;
  const bool is_for_port = std::equal(port_address_.begin(), port_address_.end(), destination);
  if (is_for_group || is_for_port) steer(frame, &from);
  if (!is_for_port && wire_ != nullptr) wire_->send_frame(frame);
}

void Card::receive_frame(std::span<const std::byte> frame) {
  if (frame.size() >= kernels::rdma::kLeastFrame) steer(frame, nullptr);
}

/// `from`: null for a frame of the wire.
void Card::steer(std::span<const std::byte> frame, const QueuePair* from) {
  const auto number = flow_rules_.find(fields_of(frame));
  const auto found = number ? pairs_.find(*number) : pairs_.end();
  if (found == pairs_.end()) {
    ++dropped_;
    return;
  }
  QueuePair& to = found->second;
  const bool is_ready =
      to.state == State::receiving || to.state == State::sending || to.state == State::drained;
  const bool is_own = from != nullptr && from->owner == to.owner;
  if (is_ready && to.receives != nullptr && (!is_own || to.receives_own)) {
    deliver_frame(to, frame);
  } else {
    ++dropped_;
  }
}

/// Copies a frame to the oldest receive. If it does not fit, the receiver fails, not the sender.
Card::Result Card::deliver_frame(QueuePair& peer, std::span<const std::byte> frame) {
  if (peer.receives->look() == 0) {
    note_fault(peer);
    const bool waits = !peer.is_owned && peer.state != State::error && !fail_without_receive_;
    if (waits) return Result::waits;
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
