#include "softcard/preload/loopback_wire.hpp"

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

}  // namespace

LoopbackWire::LoopbackWire() : datagrams_(kPort, {SO_RCVBUF, SO_SNDBUF, kBufferBytes}) {
  // Processes of other namespaces may have the same number.
  constexpr std::uint32_t kTries = 64;
  for (std::uint32_t i = 0; i < kTries; ++i) {
    address_ = kFirstAddress + (static_cast<std::uint32_t>(::getpid()) + i) % kAddresses;
    if (datagrams_.bind(address_)) return;
  }
  core::throw_errno("find a free address of the loopback", EADDRINUSE);
}

void LoopbackWire::send(std::uint32_t address, std::span<const std::byte> datagram) {
  ++sent_;
  datagrams_.send(address, datagram);
}

bool LoopbackWire::receive(rdma::model::Card& card) {
  return datagrams_.receive([&](std::uint32_t from, std::span<const std::byte> datagram) {
    ++received_;
    card.receive(from, datagram);
  });
}

}  // namespace offload::softcard
