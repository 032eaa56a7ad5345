#pragma once

#include <openssl/types.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/tls/context.hpp"

namespace offload::net {

enum class TlsHandshake : std::uint8_t {
  done,
  under_way,  ///< call again when the socket is readable, or writable if wants_write()
  failed,     ///< errno and failure() say why; the peer was told
};

/// TLS 1.3 over a connected, non-blocking socket. Its calls return what the system calls of their
/// names would: a count, or -1 with errno: EAGAIN if they would block, ECONNRESET if the peer left
/// without a close_notify, EPROTO if the connection broke in TLS; failure() says what was wrong.
/// After a failure each call fails, unless keep_receiving() was called. It holds at most a record
/// of 16 KiB each way, another one that the socket took in part, and none while it is idle. One
/// thread. The process ignores SIGPIPE.
class TlsStream {
 public:
  /// `socket` stays the caller's and outlives it. Throws Error (no_memory).
  TlsStream(const TlsContext& context, int socket);
  TlsStream& operator=(TlsStream&&) = delete;

  /// Goes on with the handshake. Nothing else may be called until it is done.
  TlsHandshake handshake();

  /// Receives until `room` is full or nothing is left; 0: the peer has said that it sends no more
  /// (close_notify). An end of the connection without that is a failure: it may be an attack.
  ssize_t receive(std::span<std::byte> room);
  /// Returns whether receive() may have more data that epoll does not report: call it again then.
  [[nodiscard]] bool has_pending() const noexcept { return has_pending_; }

  /// Sends as much as the socket takes. The next send has to begin with the bytes that this one did
  /// not take, as a record of them may be on its way; it may have more of them, or fewer.
  ssize_t send(std::span<const iovec> pieces);
  ssize_t send(std::span<const std::byte> bytes);
  /// From now on a send that fails because the connection is broken leaves what has arrived to
  /// receive(); only sends fail after it.
  void keep_receiving() noexcept { keeps_receiving_ = true; }
  /// Tells the peer that no more data follows (close_notify), if the socket has room now. Data of
  /// the peer can still be received.
  void close_notify() noexcept;

  /// Returns the name of the pre-shared key that the peer of a server has proven; empty before the
  /// handshake is done, and with certificates.
  [[nodiscard]] std::string_view proven_identity() const;

  /// Returns whether the last call, even a receive or handshake, waits for the socket to take
  /// bytes.
  [[nodiscard]] bool wants_write() const noexcept;
  /// Return whether the kernel encrypts, or decrypts.
  [[nodiscard]] bool kernel_sends() const noexcept { return kernel_sends_; }
  [[nodiscard]] bool kernel_receives() const noexcept;
  /// Why the stream failed, for people; empty if it did not.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// OpenSSL's code (X509_V_ERR_...) for why the peer's certificate was refused; 0: it was not.
  [[nodiscard]] int certificate_error() const noexcept { return certificate_error_; }
  /// Returns whether it failed because the peer does not use TLS. A server has sent such a peer
  /// nothing.
  [[nodiscard]] bool peer_is_plain() const noexcept { return peer_is_plain_ || peer_speaks_http_; }
  /// Returns whether the peer sent an HTTP request without TLS.
  [[nodiscard]] bool peer_speaks_http() const noexcept { return peer_speaks_http_; }

 private:
  bool finish_record();
  void keep_record(std::span<const std::byte> record);
  void end_of_write(int result);
  ssize_t end_of_call(int result);
  ssize_t fail(std::string reason, int errnum);
  std::string describe_error();
  static void on_message(int is_write, int version, int type, const void* bytes, std::size_t size,
                         SSL* ssl, void* stream);
  static int on_verified(int is_valid, X509_STORE_CTX* check);

  std::unique_ptr<SSL, TlsContext::FreeSsl> ssl_;
  int socket_;
  bool has_pending_ = false;
  bool kernel_sends_ = false;
  /// The record that the socket took in part, and how many of its bytes, once it has gone, the
  /// caller does not know of yet.
  std::vector<std::byte> unfinished_;
  std::size_t credit_ = 0;
  std::uint32_t messages_ = 0;  ///< of the handshake protocol, received after the handshake
  std::string failure_;
  int certificate_error_ = 0;
  std::string refused_;  ///< the description of that certificate
  bool keeps_receiving_ = false;
  bool peer_is_plain_ = false;
  bool peer_speaks_http_ = false;
  bool is_broken_ = false;  ///< a send has failed, and what has arrived can be received
};

}  // namespace offload::net
