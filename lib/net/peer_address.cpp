#include "net/peer_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace offload::net {
namespace {

/// ::ffff:0:0/96, RFC 4291, 2.5.5.2.
constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kSitePrefix = 8;

}  // namespace

PeerAddress::PeerAddress(const sockaddr_storage& address) noexcept {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), ip_.begin());
    std::memcpy(ip_.data() + kMappedPrefix.size(), &v4.sin_addr, sizeof v4.sin_addr);
    port_ = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(ip_.data(), &v6.sin6_addr, ip_.size());
    port_ = ntohs(v6.sin6_port);
  }
}

bool PeerAddress::is_v4() const noexcept {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), ip_.begin());
}

PeerAddress::Text PeerAddress::text() const noexcept {
  Text text;
  char* to = text.characters.data();
  char* const end = to + text.characters.size();
  const auto put = [&](std::string_view part) { to = std::copy(part.begin(), part.end(), to); };
  if (port_ == 0) {
    put("of unknown address");
  } else {
    std::array<char, INET6_ADDRSTRLEN> ip{};
    if (is_v4()) {
      put(::inet_ntop(AF_INET, ip_.data() + kMappedPrefix.size(), ip.data(), ip.size()));
    } else {
      put("[");
      put(::inet_ntop(AF_INET6, ip_.data(), ip.data(), ip.size()));
      put("]");
    }
    put(":");
    to = std::to_chars(to, end, port_).ptr;
  }
  text.size = static_cast<std::size_t>(to - text.characters.data());
  return text;
}

PeerAddress::Network PeerAddress::network() const noexcept {
  Network network = ip_;
  if (!is_v4()) std::fill(network.begin() + kSitePrefix, network.end(), std::uint8_t{0});
  return network;
}

}  // namespace offload::net
