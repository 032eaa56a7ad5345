#include "apps/client/connector.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::Duration;
using core::TimePoint;

/// The limit of one attempt: an unanswered SYN must not take all the time, as the server may come
/// up.
constexpr Duration kAttemptTime = std::chrono::seconds(2);
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);

/// If the server's port is in the ephemeral range and no socket listens on it, the kernel may
/// choose the same port for this end, and TCP connects the socket to itself.
bool is_connected_to_itself(int fd, const net::SocketAddress& address) {
  return net::local_address(fd).to_string() == address.to_string();
}

}  // namespace

Connector::Connector(const std::string& host, std::uint16_t port, TimePoint deadline,
                     const core::Signals& signals, std::optional<net::TlsContext> tls)
    : host_(host),
      addresses_(net::resolve(host, port, false)),
      deadline_(deadline),
      tls_(std::move(tls)) {
  // Edge-triggered: it is not read here.
  engine_.watch(signals.fd(), EPOLLIN | EPOLLET, interrupted_);
}

bool Connector::wait(const EventFlag& event, TimePoint until) {
  do {
    engine_.run_once(until);
  } while (!event.raised() && !interrupted_.raised() && Clock::now() < until);
  return event.raised() && !interrupted_.raised();
}

net::Stream Connector::connect() {
  Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    net::Stream stream = try_all();
    if (stream.valid() || interrupted_.raised()) return stream;
    if (first) core::log_info("waiting for the server: {}", reason_);
    const TimePoint now = Clock::now();
    if (now >= deadline_)
      throw core::Error(core::ErrorCode::timed_out, reason_ + " (--connect-timeout is over)");
    wait(interrupted_, std::min(now + pause, deadline_));
    if (interrupted_.raised()) return {};
    pause = std::min(pause * 2, kLongestPause);
  }
}

net::Stream Connector::try_all() {
  for (const auto& address : addresses_) {
    try {
      net::Stream stream = try_one(address);
      if (stream.valid() || interrupted_.raised()) return stream;
    } catch (const core::Error& error) {
      // Out of descriptors, for example; a server that is not the one that is wanted.
      if (error.code() == core::ErrorCode::no_memory) throw;
      if (error.code() == core::ErrorCode::bad_message) throw;
      reason_ = error.what();
    }
  }
  return {};
}

net::Stream Connector::try_one(const net::SocketAddress& address) {
  const TimePoint now = Clock::now();
  const TimePoint until = std::clamp(deadline_, now + kFirstPause, now + kAttemptTime);
  core::Fd socket = open_socket(address, until);
  if (!socket.valid() || !tls_) return socket;
  return start_tls(std::move(socket), address, until);
}

core::Fd Connector::open_socket(const net::SocketAddress& address, TimePoint until) {
  core::Fd fd = net::start_connect(address);
  EventFlag connected;
  engine_.watch(fd.get(), EPOLLOUT, connected);
  const bool answered = wait(connected, until);
  engine_.unwatch(fd.get(), connected);
  if (interrupted_.raised()) return {};
  const int error = answered ? net::connect_result(fd.get()) : ETIMEDOUT;
  if (error != 0) core::throw_errno("cannot connect to " + address.to_string(), error);
  if (is_connected_to_itself(fd.get(), address)) {
    core::throw_errno("cannot connect to " + address.to_string(), ECONNREFUSED);
  }
  return fd;
}

net::Stream Connector::start_tls(core::Fd socket, const net::SocketAddress& address,
                                 TimePoint until) {
  const std::string action = "cannot speak TLS with " + address.to_string();
  net::Stream stream(std::move(socket), *tls_);
  while (true) {
    const net::TlsHandshake state = stream.handshake();
    if (state == net::TlsHandshake::done) return stream;
    if (state == net::TlsHandshake::failed) {
      const int error = errno;
      const std::string reason = action + ": " + stream.describe_error(error);
      // One that went away may be starting.
      if (error == EPROTO) throw core::Error(core::ErrorCode::bad_message, reason);
      throw core::Error(core::ErrorCode::connection_reset, reason);
    }
    EventFlag ready;
    engine_.watch(stream.fd(), stream.wants_write() ? EPOLLOUT : EPOLLIN, ready);
    const bool answered = wait(ready, until);
    engine_.unwatch(stream.fd(), ready);
    if (interrupted_.raised()) return {};
    if (!answered) core::throw_errno(action, ETIMEDOUT);
  }
}

}  // namespace offload::client
