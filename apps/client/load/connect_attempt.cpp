#include "apps/client/load/connect_attempt.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"

namespace offload::client {
namespace {

/// If the server's port is in the ephemeral range and no socket listens on it, the kernel may
/// choose the same port for this end, and TCP connects the socket to itself.
bool is_connected_to_itself(int fd, const net::SocketAddress& address) {
  return net::local_address(fd).to_string() == address.to_string();
}

}  // namespace

ConnectAttempt::ConnectAttempt(const net::SocketAddress& address, const net::TlsContext* tls)
    : address_(address), tls_(tls), socket_(net::start_connect(address)) {}

std::uint32_t ConnectAttempt::events() const noexcept {
  return !stream_.valid() || stream_.wants_write() ? EPOLLOUT : EPOLLIN;
}

std::string ConnectAttempt::describe(int errnum) const {
  if (stream_.valid()) {
    return "cannot use TLS with " + address_.to_string() + ": " + stream_.describe_error(errnum);
  }
  return "cannot connect to " + address_.to_string() + ": " + core::describe_errno(errnum);
}

ConnectAttempt::State ConnectAttempt::fail(int errnum, const std::string& reason) {
  error_ = errnum;
  reason_ = reason;
  return State::failed;
}

ConnectAttempt::State ConnectAttempt::advance() {
  if (!stream_.valid() && check_socket() == State::failed) return State::failed;
  return tls_ == nullptr ? State::connected : continue_handshake();
}

ConnectAttempt::State ConnectAttempt::check_socket() {
  const int error = net::connect_result(fd());
  if (error != 0) return fail(error, describe(error));
  if (is_connected_to_itself(fd(), address_)) return fail(ECONNREFUSED, describe(ECONNREFUSED));
  stream_ =
      tls_ == nullptr ? net::Stream(std::move(socket_)) : net::Stream(std::move(socket_), *tls_);
  return State::connected;
}

ConnectAttempt::State ConnectAttempt::continue_handshake() {
  switch (stream_.handshake()) {
    case net::TlsHandshake::done: return State::connected;
    case net::TlsHandshake::under_way: return State::pending;
    case net::TlsHandshake::failed: break;
  }
  const int error = errno;
  return fail(error, describe(error));
}

}  // namespace offload::client
