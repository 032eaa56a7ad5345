#include "softcard/program/datagrams.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

constexpr std::size_t kMostBytes = 16 << 10;

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) noexcept {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  made.sin_addr.s_addr = htonl(address);
  return made;
}

}  // namespace

Datagrams::Datagrams(std::uint16_t port, const Buffers& buffers)
    : fd_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                            "make a socket")),
      port_(port),
      room_(kMostBytes) {
  for (const int option : {buffers.receive_option, buffers.send_option}) {
    core::check_errno(
        ::setsockopt(fd_.get(), SOL_SOCKET, option, &buffers.bytes, sizeof buffers.bytes),
        "set a socket's buffer");
  }
}

bool Datagrams::bind(std::uint32_t address) {
  const sockaddr_in own = socket_address(address, port_);
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return true;
  if (errno != EADDRINUSE) core::throw_errno("bind UDP port " + std::to_string(port_));
  return false;
}

void Datagrams::send(std::uint32_t address, std::span<const std::byte> datagram) noexcept {
  const sockaddr_in to = socket_address(address, port_);
  static_cast<void>(::sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

std::span<const std::byte> Datagrams::receive_one(std::uint32_t& from) noexcept {
  sockaddr_in sender{};
  socklen_t size = sizeof sender;
  const auto length = ::recvfrom(fd_.get(), room_.data(), room_.size(), 0,
                                 reinterpret_cast<sockaddr*>(&sender), &size);
  if (length < 0) return {};
  from = ntohl(sender.sin_addr.s_addr);
  return std::span(room_).first(static_cast<std::size_t>(length));
}

}  // namespace offload::softcard
