#include "softcard/program/ethernet.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

constexpr std::size_t kMostFrame = 16 << 10;
constexpr int kMostFramesInTurn = 64;

}  // namespace

Ethernet::Ethernet(const std::string& interface)
    : fd_(core::check_errno(
          ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL)),
          "make a packet socket")),
      room_(kMostFrame) {
  ifreq about{};
  std::strncpy(about.ifr_name, interface.c_str(), sizeof about.ifr_name - 1);
  core::check_errno(::ioctl(fd_.get(), SIOCGIFHWADDR, &about),
                    "ask for the address of " + interface);
  std::copy_n(std::begin(about.ifr_hwaddr.sa_data), address_.size(), address_.begin());
  // Frames that this machine sends are not from the wire.
  const int yes = 1;
  core::check_errno(::setsockopt(fd_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes),
                    "leave out what is sent");
  sockaddr_ll own{};
  own.sll_family = AF_PACKET;
  own.sll_protocol = htons(ETH_P_ALL);
  own.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  core::check_errno(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own),
                    "bind a packet socket to " + interface);
}

void Ethernet::send(std::span<const std::byte> frame) noexcept {
  static_cast<void>(::send(fd_.get(), frame.data(), frame.size(), 0));
}

bool Ethernet::receive(rdma::model::Card& card) {
  for (int count = 0; count < kMostFramesInTurn; ++count) {
    const auto length = ::recv(fd_.get(), room_.data(), room_.size(), 0);
    if (length < 0) return count != 0;
    card.receive_frame(std::span(room_).first(static_cast<std::size_t>(length)));
  }
  return true;
}

}  // namespace offload::softcard
