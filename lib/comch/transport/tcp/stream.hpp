#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "net/tls/stream.hpp"

namespace offload::comch {

/// Waits for an event of poll(2). Returns whether it came before `until`.
bool wait_for(short event, int fd, core::TimePoint until);

/// A connected, non-blocking stream socket, as it is or inside TLS. Move-only; one thread at a
/// time.
class Stream {
 public:
  /// Without TLS.
  explicit Stream(core::Fd socket) noexcept : socket_(std::move(socket)) {}
  /// With TLS, which handshake() begins. Throws Error.
  Stream(core::Fd socket, const net::TlsContext& context);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  /// Tells the peer that nothing more comes.
  ~Stream();

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

  /// Goes on with the handshake. Whether it is over, the peer having proven a key; at once without
  /// TLS. Throws Error: not_permitted for a server whose peer proves none, connection_aborted for a
  /// worker, whom anybody may have answered.
  bool handshake();
  /// Whether the handshake waits for room to send, rather than for the peer.
  [[nodiscard]] bool wants_to_send() const noexcept { return tls_ && tls_->wants_write(); }

  /// As recv(2), errno included.
  ssize_t receive(std::span<std::byte> to);
  /// As sendmsg(2). After it took less than all, the next call begins with the rest of the same
  /// bytes.
  ssize_t send(std::span<const iovec> pieces);
  /// Why a call failed with `error`.
  [[nodiscard]] std::string failure(int error) const;

  /// "TLS 1.3, encrypted by the kernel"
  [[nodiscard]] std::string describe() const;

 private:
  core::Fd socket_;
  std::unique_ptr<net::TlsStream> tls_;  ///< null: without TLS
  bool is_server_ = false;
};

}  // namespace offload::comch
