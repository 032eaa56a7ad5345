#include "packets/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::packets {
namespace {

using kernels::packets::HostAddresses;

std::uint32_t v4_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

/// Collects addresses, each once.
class Collection {
 public:
  /// `is_own`: of the interface.
  void add(const ifaddrs& one, bool is_own) {
    const int family = one.ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_PACKET) {
      if (is_own) add_ethernet(*reinterpret_cast<const sockaddr_ll*>(one.ifa_addr));
      return;
    }
    if (family == AF_INET) {
      add_v4(one);
      bytes = &reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr;
    } else {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
      add_v6(address);
      bytes = &address;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_own && ::inet_ntop(family, bytes, text.data(), text.size()) != nullptr) {
      found_.own.emplace_back(text.data());
    }
  }

  PortAddresses take() {
    if (left_out_ != 0) {
      core::log_warning("{} addresses of this host do not fit: datagrams from them are answered",
                        left_out_);
    }
    return std::move(found_);
  }

 private:
  /// The address of an interface that is not Ethernet matches no frame.
  void add_ethernet(const sockaddr_ll& link) {
    std::memcpy(found_.host.ethernet, link.sll_addr, ETH_ALEN);
  }

  void add_v4(const ifaddrs& one) {
    HostAddresses& host = found_.host;
    const std::uint32_t address = v4_of(one.ifa_addr);
    add_word(host.v4, host.v4_count, address);
    // For an address with a peer, the subnet is the peer's, which getifaddrs(3) returns instead of
    // the broadcast address.
    const std::uint32_t mask = one.ifa_netmask == nullptr ? ~0U : v4_of(one.ifa_netmask);
    const bool has_other = (one.ifa_flags & IFF_BROADCAST) != 0 && one.ifa_broadaddr != nullptr;
    const std::uint32_t of_subnet = has_other ? v4_of(one.ifa_broadaddr) : address;
    if (~mask > 1) add_word(host.broadcasts, host.broadcast_count, of_subnet | ~mask);
  }

  void add_word(std::uint32_t* list, std::uint32_t& count, std::uint32_t word) {
    if (std::find(list, list + count, word) != list + count) return;
    if (count == HostAddresses::kMost) {
      ++left_out_;
    } else {
      list[count++] = word;
    }
  }

  void add_v6(const in6_addr& address) {
    HostAddresses& host = found_.host;
    if (host.v6_count == HostAddresses::kMost) {
      ++left_out_;
      return;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      host.v6[host.v6_count][i] = kernels::packets::load_32(address.s6_addr + 4 * i);
    }
    ++host.v6_count;
  }

  PortAddresses found_;
  std::uint32_t left_out_ = 0;
};

}  // namespace

PortAddresses read_addresses(const std::string& interface) {
  ifaddrs* first = nullptr;
  core::check_errno(::getifaddrs(&first), "getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  Collection collection;
  for (const bool is_own : {true, false}) {
    for (const int family : {AF_PACKET, AF_INET, AF_INET6}) {
      for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
        // An IPv4 address may have a label: "eth1:backup".
        const std::string_view label(one->ifa_name);
        if ((label.substr(0, label.find(':')) == interface) == is_own) collection.add(*one, is_own);
      }
    }
  }
  return collection.take();
}

AddressChanges::AddressChanges()
    : socket_(core::check_errno(
          ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE),
          "socket(AF_NETLINK)")) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_LINK;
  core::check_errno(
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
      "bind(AF_NETLINK)");
}

bool AddressChanges::take() noexcept {
  std::array<char, 256> message;  // that there is one is enough
  bool changed = false;
  for (;;) {
    if (::recv(socket_.get(), message.data(), message.size(), 0) >= 0 || errno == ENOBUFS) {
      changed = true;
    } else if (errno != EINTR) {
      return changed;
    }
  }
}

}  // namespace offload::packets
