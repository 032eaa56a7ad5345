#pragma once

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "kernels/packets/answers.hpp"

namespace offload::packets::test {

using Bytes = std::vector<std::uint8_t>;

/// A network namespace for this process alone, which ends with it, with two ends of a wire: v0,
/// which tests make a port of, and v1, whose frames they write and read. There is no IPv6, so that
/// the kernel sends no frames by itself, such as those of duplicate address detection, which tests
/// would count.
class Veth {
 public:
  explicit Veth(unsigned hardware_queues = 1) {
    if (::unshare(CLONE_NEWNET) != 0) {
      unavailable_ = "no network namespace of its own: " + core::describe_errno(errno);
      return;
    }
    const std::string queues = " numrxqueues " + std::to_string(hardware_queues) + " numtxqueues " +
                               std::to_string(hardware_queues);
    const std::string made =
        "f=/proc/sys/net/ipv6/conf/default/disable_ipv6; if [ -e $f ]; then echo 1 >$f; fi && "
        "ip link add v0" +
        queues + " type veth peer name v1" + queues + " && ip link set v0 up && ip link set v1 up";
    if (std::system(made.c_str()) != 0) {
      unavailable_ = "no veth: `ip link add` failed";
      return;
    }
    socket_.reset(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(::if_nametoindex("v1"));
    core::check_errno(
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        "bind to v1");
  }

  /// Returns why there is none; empty if there is.
  [[nodiscard]] const std::string& unavailable() const { return unavailable_; }

  void write(std::span<const std::uint8_t> frame) const {
    core::check_errno(::send(socket_.get(), frame.data(), frame.size(), 0), "send to v1");
  }
  /// Returns the next UDP frame that came to v1; empty if none comes within 2 s.
  [[nodiscard]] Bytes read() const {
    for (;;) {
      pollfd readable{socket_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 2000) != 1) return {};
      Bytes frame(4096);
      sockaddr_ll from{};
      socklen_t length = sizeof from;
      const auto bytes = ::recvfrom(socket_.get(), frame.data(), frame.size(), 0,
                                    reinterpret_cast<sockaddr*>(&from), &length);
      core::check_errno(bytes, "recvfrom v1");
      frame.resize(static_cast<std::size_t>(bytes));
      const auto headers =
          kernels::packets::parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
      // Skips sent frames and those that the kernel sends by itself (IPv6 neighbours).
      if (from.sll_pkttype != PACKET_OUTGOING && headers.is_whole(kernels::packets::kUdp)) {
        return frame;
      }
    }
  }

 private:
  std::string unavailable_;
  core::Fd socket_;
};

/// Returns a UDP datagram from 10.0.0.2:1000 to 10.0.0.1:`port`.
inline Bytes make_datagram(std::uint16_t port, std::span<const std::uint8_t> payload) {
  using namespace kernels::packets;
  Bytes frame(42);
  std::memset(frame.data(), 0xff, 6);  // broadcast, so that it is for this host too
  frame[6] = 2;
  store_16(frame.data() + 12, kIpv4);
  std::uint8_t* const ip = frame.data() + 14;
  ip[0] = 0x45;
  store_16(ip + 2, static_cast<std::uint32_t>(28 + payload.size()));
  ip[8] = 64;
  ip[9] = kUdp;
  const std::uint8_t addresses[] = {10, 0, 0, 2, 10, 0, 0, 1};
  std::memcpy(ip + 12, addresses, sizeof addresses);
  store_16(ip + 10, checksum_of(add_bytes(0, ip, 20)));
  store_16(frame.data() + 34, 1000);
  store_16(frame.data() + 36, port);
  store_16(frame.data() + 38, static_cast<std::uint32_t>(8 + payload.size()));
  frame.insert(frame.end(), payload.begin(), payload.end());
  const auto headers = parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
  write_udp_checksum(frame.data(), headers);
  return frame;
}

}  // namespace offload::packets::test
