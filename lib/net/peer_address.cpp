#include "net/peer_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

namespace offload::net {

PeerAddress::PeerAddress(const sockaddr_storage& address) noexcept : ip_(ip_bytes(address)) {
  if (address.ss_family == AF_INET) {
    port_ = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  } else if (address.ss_family == AF_INET6) {
    port_ = ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
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
    if (is_v4(ip_)) {
      put(::inet_ntop(AF_INET, ip_.data() + ip_.size() - sizeof(in_addr), ip.data(), ip.size()));
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

}  // namespace offload::net
