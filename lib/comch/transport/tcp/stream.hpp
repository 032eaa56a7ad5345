#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "net/tls/stream.hpp"

namespace offload::comch {

/// Waits for an event of poll(2). Returns whether it occurred before `until`.
bool wait_for(short event, int fd, core::TimePoint until);

/// A connected, non-blocking stream socket, plain or with TLS. Move-only; one thread at a time.
class TcpStream {
 public:
  /// Without TLS.
  explicit TcpStream(core::Fd socket) noexcept : socket_(std::move(socket)) {}
  /// With TLS, which handshake() begins. Throws Error.
  TcpStream(core::Fd socket, const net::TlsContext& context);
  TcpStream(TcpStream&&) noexcept = default;
  TcpStream& operator=(TcpStream&& other) noexcept;
  /// Tells the peer that no more data follows.
  ~TcpStream();

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] bool has_tls() const noexcept { return tls_ != nullptr; }
  /// From now on a send that fails leaves what has arrived to receive(), as without TLS.
  void keep_receiving() noexcept {
    if (tls_) tls_->keep_receiving();
  }

  /// Continues the handshake. Returns whether it has finished, and so the peer has proven a key;
  /// always true without TLS. Throws Error if the peer proves none: not_permitted for a server,
  /// connection_aborted for a worker, which any host may have answered.
  bool handshake();
  /// Returns whether the handshake waits for room to send, rather than for the peer.
  [[nodiscard]] bool wants_to_send() const noexcept { return tls_ && tls_->wants_write(); }

  /// Receives as recv(2) does, and sets errno.
  ssize_t receive(std::span<std::byte> to);
  /// Sends as sendmsg(2) does. After a partial send, the next call must begin with the rest of the
  /// same bytes.
  ssize_t send(std::span<const iovec> pieces);
  /// Tells the peer that no more data follows. Data of the peer can still be received.
  void end_output() noexcept;
  /// Returns why a call failed with `error`.
  [[nodiscard]] std::string failure(int error) const;

  /// Returns the name of the key that a server's peer has proven; empty without TLS.
  [[nodiscard]] std::string_view proven_identity() const {
    return tls_ ? tls_->proven_identity() : std::string_view();
  }

  /// Returns "TLS 1.3, encrypted by the kernel", for example.
  [[nodiscard]] std::string describe() const;

 private:
  core::Fd socket_;
  std::unique_ptr<net::TlsStream> tls_;  ///< null: without TLS
  bool is_server_ = false;
};

}  // namespace offload::comch
