#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comch/session/keyring.hpp"
#include "core/fd.hpp"

struct ssl_st;

namespace offload::comch {

/// A connected, non-blocking stream socket as it is, or inside TLS 1.3 with a key that both ends
/// have (PSK with a Diffie-Hellman exchange, RFC 8446 2.2): who has the key later cannot read what
/// was recorded. No certificates, tickets, or early data.
///
/// Where the kernel takes over the encryption (SSL_OP_ENABLE_KTLS; sending with OpenSSL 3.0,
/// receiving too from 3.2 on), send() and receive() are the system calls themselves. One thread at
/// a time. Nothing allocates after the handshake but OpenSSL's buffers, once.
class Stream {
 public:
  enum class End : std::uint8_t { worker, server };

  /// Without TLS.
  explicit Stream(core::Fd socket) noexcept;
  /// With TLS, which handshake() begins. A worker offers the first of the keys, a server accepts
  /// any; they have to live until the handshake is over. Throws Error.
  Stream(core::Fd socket, End end, const Keyring& keys);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

  /// Goes on with the handshake. Whether it is over, the peer having proven the key; at once
  /// without TLS. Throws Error: not_permitted for a peer that does not have it, for a server;
  /// connection_aborted for a worker, whom anybody may have answered; connection_reset.
  bool handshake();
  /// Whether the handshake waits for room to send, rather than for the peer.
  [[nodiscard]] bool wants_to_send() const noexcept;
  /// For a server, before handshake(): whether the peer's first message names one of `keys`;
  /// nothing if it has not come whole. Nothing is taken off the socket.
  [[nodiscard]] std::optional<bool> names_a_key(const Keyring& keys) const;

  // As recv(2) and sendmsg(2), errno included: EBADMSG for what is not as the peer sent it.

  ssize_t receive(std::span<std::byte> to) noexcept;
  /// After it took less than all, the next call begins with the rest of the same bytes.
  ssize_t send(std::span<const iovec> pieces) noexcept;

  /// "TLS 1.3 with key 0123..., AES-128-GCM, sent by the kernel"; for the log.
  [[nodiscard]] std::string describe() const;

 private:
  struct SslDeleter {
    void operator()(ssl_st* ssl) const noexcept;
  };
  struct Buffer;

  ssize_t send_through_ssl(std::span<const iovec> pieces) noexcept;
  ssize_t result_of(int result) noexcept;

  core::Fd socket_;
  std::unique_ptr<ssl_st, SslDeleter> ssl_;  ///< null: without TLS
  bool kernel_sends_ = true;                 ///< the system calls are the stream's
  bool kernel_receives_ = true;
  bool is_server_ = false;
  std::string key_;  ///< the fingerprint of the one that was used
  std::unique_ptr<Buffer> unsent_;
};

/// An errno of send() or receive() in words.
std::string describe_break(int error);

}  // namespace offload::comch
