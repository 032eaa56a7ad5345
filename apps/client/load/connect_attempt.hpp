#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/socket.hpp"
#include "net/stream.hpp"

namespace offload::client {

/// If the server's port is in the ephemeral range and no socket listens on it, the kernel may
/// choose the same port for this end, and TCP connects the socket to itself.
inline bool is_connected_to_itself(int fd, const net::SocketAddress& address) {
  return net::local_address(fd).to_string() == address.to_string();
}

/// The target of a run's connections. Immutable once made: all threads read it.
struct Target {
  std::vector<net::SocketAddress> addresses;  ///< of the same server
  std::optional<net::TlsContext> tls;         ///< the connections speak it
};

/// How long one attempt may take: an unanswered SYN must not take all the time, as the server may
/// come up.
inline constexpr core::Duration kAttemptTime = std::chrono::seconds(2);
/// Pauses between attempts: the first, doubled each time until the longest.
inline constexpr core::Duration kFirstPause = std::chrono::milliseconds(10);
inline constexpr core::Duration kLongestPause = std::chrono::milliseconds(500);

/// An attempt to connect to one address, with TLS's handshake where that is wanted. It does not
/// block: its caller waits for events() of fd(), calls advance(), and gives up when it likes. One
/// thread.
class ConnectAttempt {
 public:
  enum class State : std::uint8_t { pending, connected, failed };

  /// `tls`: null for a plain connection; must outlive it. Throws Error if it fails at once.
  ConnectAttempt(const net::SocketAddress& address, const net::TlsContext* tls)
      : address_(address), tls_(tls), socket_(net::start_connect(address)) {}

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
  net::Stream take() noexcept { return std::move(stream_); }
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
    const int error = net::connect_result(fd());
    if (error != 0) return fail(error, describe(error));
    if (is_connected_to_itself(fd(), address_)) return fail(ECONNREFUSED, describe(ECONNREFUSED));
    stream_ =
        tls_ == nullptr ? net::Stream(std::move(socket_)) : net::Stream(std::move(socket_), *tls_);
    return State::connected;
  }
  State continue_handshake() {
    switch (stream_.handshake()) {
      case net::TlsHandshake::done: return State::connected;
      case net::TlsHandshake::under_way: return State::pending;
      case net::TlsHandshake::failed: break;
    }
    const int error = errno;
    return fail(error, describe(error));
  }

  net::SocketAddress address_;
  const net::TlsContext* tls_;
  core::Fd socket_;     ///< until TCP is connected
  net::Stream stream_;  ///< from then on
  int error_ = 0;
  std::string reason_;
};

}  // namespace offload::client
