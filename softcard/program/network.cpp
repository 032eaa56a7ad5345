#include "softcard/program/network.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

constexpr int kBufferBytes = 16 << 20;
/// A message of the kernel's connection manager begins so; a request of a card does not.
constexpr std::uint32_t kMessageMagic = 0x444d'4f53;
constexpr std::size_t kMessageBytes = sizeof kMessageMagic + sizeof(softcard_mad);

}  // namespace

Network::Network(std::uint32_t lost_percent, std::uint32_t seed, std::string interface)
    : datagrams_(kPort, {SO_RCVBUFFORCE, SO_SNDBUFFORCE, kBufferBytes}),
      interface_(std::move(interface)),
      lost_percent_(lost_percent),
      random_(seed) {
  if (!datagrams_.bind(INADDR_ANY)) {
    core::throw_errno("bind UDP port " + std::to_string(kPort), EADDRINUSE);
  }
}

void Network::open_ethernet(rdma::model::Card& card) {
  if (ethernet_ || interface_.empty()) return;
  ethernet_.emplace(interface_);
  card.set_port_address(ethernet_->address());
}

void Network::send(std::uint32_t address, std::span<const std::byte> datagram) {
  if (lost_percent_ != 0 && random_() % 100 < lost_percent_) return;
  datagrams_.send(address, datagram);
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
  return datagrams_.receive([&](std::uint32_t from, std::span<const std::byte> datagram) {
    if (datagram.size() == kMessageBytes &&
        std::memcmp(datagram.data(), &kMessageMagic, sizeof kMessageMagic) == 0) {
      softcard_mad message{};
      std::memcpy(&message, datagram.data() + sizeof kMessageMagic, sizeof message);
      link.deliver(message);
    } else {
      card.receive(from, datagram);
    }
  });
}

}  // namespace offload::softcard
