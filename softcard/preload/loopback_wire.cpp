#include "softcard/preload/loopback_wire.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

constexpr std::uint16_t kPort = 14792;  ///< beside that of the program softcard
constexpr std::uint32_t kFirstAddress = 127U << 24 | 64U << 16;
constexpr std::uint32_t kAddresses = 1U << 22;
constexpr int kBufferBytes = 4 << 20;
constexpr std::size_t kMostBytes = 16 << 10;
/// Datagrams in one turn at most, so that queues get their turn too.
constexpr int kMostInTurn = 64;

sockaddr_in socket_address(std::uint32_t address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kPort);
  to.sin_addr.s_addr = htonl(address);
  return to;
}

}  // namespace

LoopbackWire::LoopbackWire()
    : fd_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                            "make a socket")),
      room_(kMostBytes) {
  for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
    core::check_errno(
        ::setsockopt(fd_.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes),
        "set a socket's buffer");
  }
  // Processes of other namespaces may have the same number.
  constexpr std::uint32_t kTries = 64;
  for (std::uint32_t i = 0; i < kTries; ++i) {
    address_ = kFirstAddress + (static_cast<std::uint32_t>(::getpid()) + i) % kAddresses;
    const sockaddr_in own = socket_address(address_);
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return;
    if (errno != EADDRINUSE) break;
  }
  core::throw_errno("bind UDP port " + std::to_string(kPort));
}

void LoopbackWire::send(std::uint32_t address, std::span<const std::byte> datagram) {
  const sockaddr_in to = socket_address(address);
  ++sent_;
  // A datagram that cannot be sent is lost, as on the way.
  static_cast<void>(::sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

bool LoopbackWire::receive(rdma::model::Card& card) {
  for (int count = 0; count < kMostInTurn; ++count) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const auto length = ::recvfrom(fd_.get(), room_.data(), room_.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (length < 0) return count != 0;
    ++received_;
    card.receive(ntohl(from.sin_addr.s_addr),
                 std::span(room_).first(static_cast<std::size_t>(length)));
  }
  return true;
}

}  // namespace offload::softcard
