#include "apps/server/admission/proxied_clients.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "net/source/proxy_header.hpp"

namespace offload::server {

ProxiedClients::Waiting::Waiting(core::Fd socket_of, const net::PeerAddress& address,
                                 std::size_t port_of, ProxiedClients& table)
    : owner(&table),
      socket(std::move(socket_of)),
      proxy(address),
      port(port_of),
      deadline(table.engine_->run_time() + table.time_) {
  // Each arrival once: a part of a header stays in the socket, which stays readable.
  owner->engine_->watch(socket.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, *this);
}

ProxiedClients::Waiting::~Waiting() {
  if (socket.valid()) owner->engine_->unwatch(socket.get(), *this);
}

void ProxiedClients::Waiting::on_events(std::uint32_t epoll_events) {
  owner->read(*this, (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
}

ProxiedClients::ProxiedClients(progress::Engine& engine, std::vector<net::AddressRange> proxies,
                               OnNamed on_named, core::Duration time, std::size_t most)
    : engine_(&engine),
      proxies_(std::move(proxies)),
      on_named_(std::move(on_named)),
      time_(time),
      most_(most) {}

bool ProxiedClients::is_proxy(const net::SocketAddress& address) const noexcept {
  return std::ranges::any_of(
      proxies_, [&](const net::AddressRange& range) { return range.contains(address); });
}

void ProxiedClients::add(core::Fd socket, const net::PeerAddress& proxy, std::size_t port) {
  if (waiting_.size() == most_) close(waiting_.front(), "other connections need its place");
  waiting_.emplace_back(std::move(socket), proxy, port, *this);
  waiting_.back().self = std::prev(waiting_.end());
}

core::RunTime ProxiedClients::deadline() const noexcept {
  return waiting_.empty() ? core::RunTime::max() : waiting_.front().deadline;
}

void ProxiedClients::close_late() {
  while (!waiting_.empty() && waiting_.front().deadline <= engine_->run_time()) {
    close(waiting_.front(), "its PROXY header did not arrive in time");
  }
}

/// Takes the header, and nothing behind it, if it is whole. `ended`: no more bytes will come.
void ProxiedClients::read(Waiting& waiting, bool ended) {
  std::array<std::byte, net::kMaxProxyHeader> bytes;
  const ssize_t count = ::recv(waiting.socket.get(), bytes.data(), bytes.size(), MSG_PEEK);
  if (count < 0 && (errno == EAGAIN || errno == EINTR) && !ended) return;
  const std::size_t there = count > 0 ? static_cast<std::size_t>(count) : 0;
  const auto header = net::parse_proxy_header(std::span(bytes).first(there));
  switch (header.state) {
    case net::ProxyHeader::State::invalid:
      return close(waiting, "it does not begin with a PROXY header of version 2");
    case net::ProxyHeader::State::incomplete:
      if (ended || count == 0) close(waiting, "it ended in its PROXY header");
      return;
    case net::ProxyHeader::State::complete: break;
  }
  // They were there to be looked at.
  if (::recv(waiting.socket.get(), bytes.data(), header.size, 0) !=
      static_cast<ssize_t>(header.size)) {
    return close(waiting, "its PROXY header cannot be read");
  }
  engine_->unwatch(waiting.socket.get(), waiting);
  core::Fd socket = std::move(waiting.socket);
  const net::PeerAddress client = header.client.value_or(waiting.proxy);
  const std::size_t port = waiting.port;
  waiting_.erase(waiting.self);
  on_named_(std::move(socket), client, port);
}

void ProxiedClients::close(Waiting& waiting, const char* reason) {
  if (closed_log_.allow(engine_->now())) {
    core::log_warning("a connection of proxy {} is closed: {} ({} more were not logged)",
                      std::string_view(waiting.proxy.text()), reason, closed_log_.suppressed());
  }
  waiting_.erase(waiting.self);
}

}  // namespace offload::server
