#include "comch/transport/tcp/listener.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "comch/transport/tcp/control.hpp"
#include "core/error.hpp"
#include "net/every_address.hpp"

namespace offload::comch {
namespace {

/// The backlog of a socket: large, because any host may connect, and a connection without room
/// tries again only after a second.
constexpr int kBacklog = 1024;

/// Returns the sockets for each address of `address`, which have the same port.
std::vector<core::Fd> listen_at(const Address& address) {
  auto groups = net::listen_at_each(
      net::resolve(address.host, address.port),
      [](const net::SocketAddress& at) { return net::listen_tcp_by_source(at, kBacklog); },
      [](const auto& sockets) { return net::local_address(sockets.front().get()).port(); });
  std::vector<core::Fd> sockets;
  for (auto& group : groups) std::ranges::move(group, std::back_inserter(sockets));
  return sockets;
}

}  // namespace

TcpListener::TcpListener(const Address& address)
    : Listener(address),
      sockets_(listen_at(address)),
      epoll_(core::check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      streams_(address) {
  address.require_key();
  set_port(net::local_address(sockets_.front().get()).port());
  for (const core::Fd& socket : sockets_) {
    epoll_event event{EPOLLIN, {.fd = socket.get()}};
    core::check_errno(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event), "epoll_ctl");
  }
}

/// Accepts connections of the sockets in turn, so that none delays the others: epoll_wait(2) moves
/// a socket that it returned behind all others that are ready. The rest of a flood that is not
/// admitted waits for the next event.
std::unique_ptr<ControlConnection> TcpListener::accept() {
  epoll_event ready{};
  for (int tried = 0; tried < kBacklog; ++tried) {
    const int count = ::epoll_wait(epoll_.get(), &ready, 1, 0);
    if (count == 0) return nullptr;
    if (count < 0) continue;  // by a signal
    net::SocketAddress peer;
    peer.size = sizeof peer.storage;
    core::Fd fd(::accept4(ready.data.fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == ECONNABORTED || errno == EINTR || errno == EAGAIN) continue;
      if (waiting_log_.allow(core::Clock::now())) {
        core::log_warning("a control connection must wait: {}", core::describe_errno(errno));
      }
      return nullptr;
    }
    if (!admits(peer)) continue;  // closes it
    net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
    return make(streams_.make(std::move(fd)), streams_.keys());
  }
  return nullptr;
}

std::vector<net::SocketAddress> TcpListener::own_addresses() const {
  std::vector<net::SocketAddress> addresses;
  for (const core::Fd& socket : sockets_) addresses.push_back(net::local_address(socket.get()));
  return addresses;
}

std::unique_ptr<ControlConnection> TcpListener::make(TcpStream stream,
                                                     std::shared_ptr<const Keyring> keys) {
  return std::make_unique<StreamControlConnection>(std::move(stream), connect_tcp_stream,
                                                   std::move(keys));
}

}  // namespace offload::comch
