#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/fd.hpp"
#include "net/arrival.hpp"
#include "net/tls/stream.hpp"

namespace offload::net {

/// A connection of a stream socket, plain or in TLS. Its calls return what the system calls of
/// their names do; a plain one costs a branch more than they. The socket is connected and
/// non-blocking. One thread.
class Stream {
 public:
  Stream() noexcept = default;
  /// A plain one.
  Stream(core::Fd socket) noexcept : socket_(std::move(socket)) {}
  /// In TLS: handshake() comes first. Throws Error (no_memory).
  Stream(core::Fd socket, const TlsContext& context)
      : socket_(std::move(socket)), tls_(std::make_unique<TlsStream>(context, socket_.get())) {}

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] bool valid() const noexcept { return socket_.valid(); }
  [[nodiscard]] bool is_tls() const noexcept { return tls_ != nullptr; }

  /// As TlsStream; a plain stream is done.
  TlsHandshake handshake() { return tls_ ? tls_->handshake() : TlsHandshake::done; }

  ssize_t receive(std::span<std::byte> room) {
    if (tls_) [[unlikely]]
      return tls_->receive(room);
    return ::recv(fd(), room.data(), room.size(), 0);
  }
  /// The same, with `arrival`: when the last of the bytes came to this machine, of a plain socket
  /// that tell_arrivals() was called for; else {}.
  ssize_t receive(std::span<std::byte> room, WallTime& arrival) {
    arrival = {};
    return tls_ ? receive(room) : receive_with_arrival(fd(), room, arrival);
  }
  /// Returns whether receive() may have more data that epoll does not report.
  [[nodiscard]] bool has_pending() const noexcept { return tls_ && tls_->has_pending(); }

  /// The next send has to begin with the bytes that this one did not take.
  ssize_t send(std::span<iovec> pieces) {
    if (tls_) [[unlikely]]
      return tls_->send(pieces);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
    return ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ssize_t send(std::span<const std::byte> bytes) {
    if (tls_) [[unlikely]]
      return tls_->send(bytes);
    return ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  /// Returns whether the last TLS call, even a receive, waits for the socket to take bytes.
  [[nodiscard]] bool wants_write() const noexcept { return tls_ && tls_->wants_write(); }

  /// As TlsStream; a plain stream does so anyway.
  void keep_receiving() noexcept {
    if (tls_) tls_->keep_receiving();
  }

  /// Tells a peer in TLS that nothing more is sent, before the socket is closed.
  void close_notify() noexcept {
    if (tls_) tls_->close_notify();
  }
  /// Ends sending, with shutdown(2), and frees the memory of TLS. Raw bytes of the peer can still
  /// be received from fd().
  void end_sending() noexcept {
    close_notify();
    tls_.reset();
    ::shutdown(fd(), SHUT_WR);
  }
  /// Gives up the socket of a plain one.
  [[nodiscard]] core::Fd release() noexcept { return std::move(socket_); }
  void close() noexcept {
    tls_.reset();
    socket_.reset();
  }

  /// Null for a plain stream.
  [[nodiscard]] const TlsStream* tls() const noexcept { return tls_.get(); }
  /// Returns a description of the failure of a call that set errno to `errnum`.
  [[nodiscard]] std::string describe_error(int errnum) const {
    return tls_ && !tls_->failure().empty() ? tls_->failure() : core::describe_errno(errnum);
  }

 private:
  core::Fd socket_;
  std::unique_ptr<TlsStream> tls_;  ///< destroyed before the socket is closed
};

}  // namespace offload::net
