#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "net/socket.hpp"
#include "net/stream.hpp"

namespace offload::net {

/// If the server's port is in the ephemeral range and no socket listens on it, the kernel may
/// choose the same port for this end, and TCP connects the socket to itself.
inline bool is_connected_to_itself(int fd, const SocketAddress& address) {
  return local_address(fd).to_string() == address.to_string();
}

/// An attempt to connect to one address, with TLS's handshake where that is wanted. It does not
/// block: its caller waits for events() of fd(), calls advance(), and gives up when it likes. One
/// thread.
class ConnectAttempt {
 public:
  enum class State : std::uint8_t { pending, connected, failed };

  /// `tls`: null for a plain connection; must outlive it. Throws Error if it fails at once.
  ConnectAttempt(const SocketAddress& address, const TlsContext* tls)
      : address_(address), tls_(tls), socket_(start_connect(address)) {}

  /// The same descriptor all the time.
  [[nodiscard]] int fd() const noexcept { return stream_.valid() ? stream_.fd() : socket_.get(); }
  /// Returns the epoll events to wait for.
  [[nodiscard]] std::uint32_t events() const noexcept {
    return !stream_.valid() || stream_.wants_write() ? EPOLLOUT : EPOLLIN;
  }
  /// To be called when one of them came.
  State advance() {
    if (!stream_.valid() && check_socket() == State::failed) return State::failed;
    return tls_ == nullptr ? State::connected : continue_handshake();
  }

  /// The connection, once it is there.
  Stream take() noexcept { return std::move(stream_); }
  /// Why it failed, for people, and the errno: EPROTO if the two do not agree in TLS.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  /// Returns the text of reason() for an error of the system.
  [[nodiscard]] std::string describe(int errnum) const {
    if (stream_.valid()) {
      return "cannot use TLS with " + address_.to_string() + ": " + stream_.describe_error(errnum);
    }
    return "cannot connect to " + address_.to_string() + ": " + core::describe_errno(errnum);
  }

 private:
  State fail(int errnum, const std::string& reason) {
    error_ = errnum;
    reason_ = reason;
    return State::failed;
  }
  State check_socket() {
    const int error = connect_result(fd());
    if (error != 0) return fail(error, describe(error));
    if (is_connected_to_itself(fd(), address_)) return fail(ECONNREFUSED, describe(ECONNREFUSED));
    stream_ = tls_ == nullptr ? Stream(std::move(socket_)) : Stream(std::move(socket_), *tls_);
    return State::connected;
  }
  State continue_handshake() {
    switch (stream_.handshake()) {
      case TlsHandshake::done: return State::connected;
      case TlsHandshake::under_way: return State::pending;
      case TlsHandshake::failed: break;
    }
    const int error = errno;
    return fail(error, describe(error));
  }

  SocketAddress address_;
  const TlsContext* tls_;
  core::Fd socket_;  ///< until TCP is connected
  Stream stream_;    ///< from then on
  int error_ = 0;
  std::string reason_;
};

}  // namespace offload::net
