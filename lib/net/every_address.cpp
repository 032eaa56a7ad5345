#include "net/every_address.hpp"

#include <netinet/in.h>

#include <cerrno>

namespace offload::net {

SocketAddress with_port(const SocketAddress& address, std::uint16_t port) noexcept {
  SocketAddress changed = address;
  // At the same place in sockaddr_in6 (socket.cpp).
  reinterpret_cast<sockaddr_in&>(changed.storage).sin_port = htons(port);
  return changed;
}

bool is_of_no_use_here(const core::Error& error) noexcept {
  const int errnum = error.system_errno();
  return errnum == EADDRNOTAVAIL || errnum == EAFNOSUPPORT || errnum == ENODEV ||
         errnum == ENETUNREACH;
}

std::vector<core::Fd> listen_tcp_at_each(const std::vector<SocketAddress>& addresses, int backlog) {
  return listen_at_each(
      addresses, [&](const SocketAddress& address) { return listen_tcp(address, backlog); },
      [](const core::Fd& socket) { return local_address(socket.get()).port(); });
}

}  // namespace offload::net
