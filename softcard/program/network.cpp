#include "softcard/program/network.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

constexpr int kBufferBytes = 16 << 20;
constexpr std::size_t kMostBytes = 16 << 10;
/// Datagrams in one turn at most, so that queues get their turn too.
constexpr int kMostInTurn = 64;
/// A message of the kernel's connection manager begins so; a request of a card does not.
constexpr std::uint32_t kMessageMagic = 0x444d'4f53;
constexpr std::size_t kMessageBytes = sizeof kMessageMagic + sizeof(softcard_mad);

}  // namespace

Network::Network(std::uint32_t lost_percent, std::uint32_t seed, std::string interface)
    : fd_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                            "make a socket")),
      interface_(std::move(interface)),
      lost_percent_(lost_percent),
      random_(seed),
      room_(kMostBytes) {
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    core::check_errno(
        ::setsockopt(fd_.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes),
        "set a socket's buffer");
  }
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(kPort);
  core::check_errno(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own),
                    "bind UDP port " + std::to_string(kPort));
}

void Network::open_ethernet(rdma::model::Card& card) {
  if (ethernet_ || interface_.empty()) return;
  ethernet_.emplace(interface_);
  card.set_port_address(ethernet_->address());
}

void Network::send(std::uint32_t address, std::span<const std::byte> datagram) {
  if (lost_percent_ != 0 && random_() % 100 < lost_percent_) return;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kPort);
  to.sin_addr.s_addr = htonl(address);
  // A datagram that cannot be sent is lost, as on the way.
  static_cast<void>(::sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

void Network::send(std::uint32_t address, const softcard_mad& message) {
  std::array<std::byte, kMessageBytes> datagram;
  std::memcpy(datagram.data(), &kMessageMagic, sizeof kMessageMagic);
  std::memcpy(datagram.data() + sizeof kMessageMagic, &message, sizeof message);
  send(address, datagram);
}

bool Network::receive(rdma::model::Card& card, Link& link) {
  const bool had_frames = ethernet_ && ethernet_->receive(card);
  return receive_datagrams(card, link) || had_frames;
}

bool Network::receive_datagrams(rdma::model::Card& card, Link& link) {
  for (int count = 0; count < kMostInTurn; ++count) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const auto length = ::recvfrom(fd_.get(), room_.data(), room_.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (length < 0) return count != 0;
    const auto datagram = std::span(room_).first(static_cast<std::size_t>(length));
    if (datagram.size() == kMessageBytes &&
        std::memcmp(datagram.data(), &kMessageMagic, sizeof kMessageMagic) == 0) {
      softcard_mad message{};
      std::memcpy(&message, datagram.data() + sizeof kMessageMagic, sizeof message);
      link.deliver(message);
    } else {
      card.receive(ntohl(from.sin_addr.s_addr), datagram);
    }
  }
  return true;
}

}  // namespace offload::softcard
