#include "net/tls/stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "core/error.hpp"
#include "net/tls/error.hpp"
#include "net/tls/psk.hpp"
#include "net/tls/revocation.hpp"

namespace offload::net {
namespace {

/// The most that a record carries (RFC 8446, 5.1).
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
/// A peer may update its keys at any time, which costs this end some microseconds each time: no
/// peer needs more updates during a connection.
constexpr std::uint32_t kMostMessages = 1024;

/// The bytes of a gathered write, from which records are made.
class Gather {
 public:
  explicit Gather(std::span<const iovec> pieces) : pieces_(pieces) { skip(0); }

  [[nodiscard]] bool done() const noexcept { return pieces_.empty(); }
  /// Returns the next bytes, up to a whole record: in their place, or copied to `room`.
  std::span<const std::byte> next(std::span<std::byte, kRecord> room) const {
    const auto first = bytes_of(0);
    if (first.size() >= kRecord || pieces_.size() == 1) {
      return first.first(std::min(first.size(), kRecord));
    }
    std::size_t filled = 0;
    for (std::size_t i = 0; i < pieces_.size() && filled < kRecord; ++i) {
      const auto bytes = bytes_of(i);
      const std::size_t size = std::min(bytes.size(), kRecord - filled);
      if (size != 0) std::memcpy(room.data() + filled, bytes.data(), size);
      filled += size;
    }
    return room.first(filled);
  }
  void skip(std::size_t count) noexcept {
    offset_ += count;
    while (!pieces_.empty() && offset_ >= pieces_.front().iov_len) {
      offset_ -= pieces_.front().iov_len;
      pieces_ = pieces_.subspan(1);
    }
  }

 private:
  [[nodiscard]] std::span<const std::byte> bytes_of(std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? offset_ : 0;
    const iovec& piece = pieces_[i];
    return {static_cast<const std::byte*>(piece.iov_base) + begin, piece.iov_len - begin};
  }

  std::span<const iovec> pieces_;
  std::size_t offset_ = 0;  ///< in the first piece
};

std::size_t size_of(std::span<const iovec> pieces) noexcept {
  std::size_t size = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  return size;
}

}  // namespace

TlsStream::TlsStream(const TlsContext& context, int socket)
    : ssl_(context.make_ssl()), socket_(socket) {
  if (::SSL_set_fd(ssl_.get(), socket) != 1) {
    throw_openssl_error("cannot start TLS", core::ErrorCode::no_memory);
  }
  ::SSL_set_ex_data(ssl_.get(), 0, this);
  ::SSL_set_verify(ssl_.get(), ::SSL_get_verify_mode(ssl_.get()), &on_verified);
}

TlsHandshake TlsStream::handshake() {
  if (!failure_.empty()) return TlsHandshake::failed;
  ::ERR_clear_error();
  const int result = ::SSL_do_handshake(ssl_.get());
  if (result != 1) {
    if (end_of_call(result) < 0 && failure_.empty()) return TlsHandshake::under_way;
    if (failure_.empty()) fail("the peer closed the connection", ECONNRESET);
    return TlsHandshake::failed;
  }
  kernel_sends_ = BIO_get_ktls_send(::SSL_get_wbio(ssl_.get()));
  // OpenSSL 3.5 loses what it has read ahead when the peer renews its keys, if kernel TLS is wanted
  // at that moment.
  if (kernel_sends_ || kernel_receives()) {
    SSL_set_read_ahead(ssl_.get(), 0);
  } else {
    ::SSL_clear_options(ssl_.get(), SSL_OP_ENABLE_KTLS);
  }
  // The last message of the handshake may have had data behind it.
  has_pending_ = ::SSL_has_pending(ssl_.get()) == 1;
  ::SSL_set_msg_callback(ssl_.get(), &on_message);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  return TlsHandshake::done;
}

ssize_t TlsStream::receive(std::span<std::byte> room) {
  if (!failure_.empty()) return fail(std::move(failure_), EPROTO);
  std::size_t received = 0;
  ssize_t end = 1;  // of the calls, if one got nothing
  while (received < room.size() && end > 0) {
    std::size_t count = 0;
    ::ERR_clear_error();
    const int result =
        ::SSL_read_ex(ssl_.get(), room.data() + received, room.size() - received, &count);
    received += count;
    if (result != 1) end = end_of_call(result);
    if (messages_ > kMostMessages) end = fail("the peer updates its keys too often", EPROTO);
  }
  const bool would_block = end < 0 && failure_.empty();
  has_pending_ = received != 0 && !would_block;
  return received != 0 ? static_cast<ssize_t>(received) : end;
}

ssize_t TlsStream::send(std::span<const iovec> pieces) {
  if (!failure_.empty()) return fail(std::move(failure_), EPROTO);
  if (is_broken_) {
    errno = EPIPE;
    return -1;
  }
  if (kernel_sends_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());  // which sendmsg does not write
    message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
    return ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (!finish_record()) return -1;
  std::array<std::byte, kRecord> room;
  Gather gather(pieces);
  // The caller still has the bytes of the record that has gone by now.
  std::size_t sent = std::min(credit_, size_of(pieces));
  credit_ -= sent;
  gather.skip(sent);
  while (!gather.done()) {
    const auto record = gather.next(room);
    std::size_t count = 0;
    ::ERR_clear_error();
    const int result = ::SSL_write_ex(ssl_.get(), record.data(), record.size(), &count);
    sent += count;
    gather.skip(count);
    if (result == 1) continue;
    end_of_write(result);
    if (failure_.empty() && !is_broken_) keep_record(record);
    if (sent == 0) return -1;
    break;
  }
  return static_cast<ssize_t>(sent);
}

/// Sends the rest of the record that the socket took in part. OpenSSL wants it with the same bytes,
/// which the caller may have moved or cut in another way since. Returns whether it has gone.
bool TlsStream::finish_record() {
  if (unfinished_.empty()) return true;
  std::size_t count = 0;
  ::ERR_clear_error();
  const int result = ::SSL_write_ex(ssl_.get(), unfinished_.data(), unfinished_.size(), &count);
  if (result != 1) {
    end_of_write(result);
    return false;
  }
  credit_ = count;
  unfinished_ = {};
  return true;
}

void TlsStream::keep_record(std::span<const std::byte> record) {
  try {
    unfinished_.assign(record.begin(), record.end());
    errno = EAGAIN;
  } catch (const std::bad_alloc&) {
    fail("no memory for data that the peer does not read", ENOMEM);
  }
}

void TlsStream::end_of_write(int result) {
  const int errnum = errno;
  // OpenSSL takes a broken connection for the peer's end if that was said before.
  const int kind = ::SSL_get_error(ssl_.get(), result);
  if (keeps_receiving_ && (kind == SSL_ERROR_SYSCALL || kind == SSL_ERROR_ZERO_RETURN)) {
    ::ERR_clear_error();
    is_broken_ = true;
    errno = EPIPE;
    return;
  }
  errno = errnum;
  if (end_of_call(result) == 0) fail("the connection is broken", EPIPE);
}

ssize_t TlsStream::send(std::span<const std::byte> bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return send(std::span(&piece, 1));
}

void TlsStream::close_notify() noexcept {
  if (!failure_.empty() || is_broken_ || ::SSL_in_init(ssl_.get()) != 0) return;
  (void)::SSL_shutdown(ssl_.get());
  ::ERR_clear_error();
}

std::string_view TlsStream::proven_identity() const {
  return net::proven_identity(ssl_.get());
}

bool TlsStream::wants_write() const noexcept {
  return SSL_want_write(ssl_.get());
}

bool TlsStream::kernel_receives() const noexcept {
  return BIO_get_ktls_recv(::SSL_get_rbio(ssl_.get()));
}

/// Sets errno as the call that returned `result` would; returns 0 at the peer's end, else -1.
ssize_t TlsStream::end_of_call(int result) {
  const int errnum = errno;
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL: {
      // OpenSSL 3.2 and later put the error of the system call into their queue.
      const unsigned long error = ::ERR_peek_error();
      const int queued = ERR_SYSTEM_ERROR(error) ? ERR_GET_REASON(error) : 0;
      const int of_system = error == 0 ? errnum : queued;
      if (of_system != 0) {
        ::ERR_clear_error();
        return fail(core::describe_errno(of_system), of_system);
      }
      [[fallthrough]];
    }
    default: {
      const auto reason = ERR_GET_REASON(::ERR_peek_error());
      const bool gone = reason == SSL_R_UNEXPECTED_EOF_WHILE_READING;
      return fail(describe_error(), gone ? ECONNRESET : EPROTO);
    }
  }
}

/// All calls fail from now on.
ssize_t TlsStream::fail(std::string reason, int errnum) {
  failure_ = std::move(reason);
  errno = errnum;
  return -1;
}

std::string TlsStream::describe_error() {
  const long verified = ::SSL_get_verify_result(ssl_.get());
  const unsigned long error = ::ERR_peek_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      ::ERR_clear_error();
      return std::string("the peer's certificate is refused: ") +
             ::X509_verify_cert_error_string(verified) +
             (refused_.empty() ? "" : " (" + refused_ + ")");
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      ::ERR_clear_error();
      peer_speaks_http_ = true;
      return "the peer speaks HTTP and does not use TLS";
    case SSL_R_WRONG_VERSION_NUMBER:
      // A later record with another version is no answer of a peer without TLS.
      peer_is_plain_ =
          ::SSL_is_server(ssl_.get()) == 0 || ::BIO_number_written(::SSL_get_wbio(ssl_.get())) == 0;
      if (!peer_is_plain_) break;
      ::ERR_clear_error();
      return "the peer does not use TLS";
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      ::ERR_clear_error();
      return "the peer closed the connection without a TLS close notification";
    default: break;
  }
  // OpenSSL's words for an alert that came from the peer: "tlsv1 alert unknown ca", for example.
  const bool from_peer = reason >= SSL_AD_REASON_OFFSET;
  return (from_peer ? "the peer refused: " : "") + take_openssl_error();
}

/// Notes which certificate OpenSSL refuses, as it does not keep it.
int TlsStream::on_verified(int is_valid, X509_STORE_CTX* check) {
  if (is_valid == 1) return 1;
  const auto* const ssl = static_cast<SSL*>(
      ::X509_STORE_CTX_get_ex_data(check, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const stream = static_cast<TlsStream*>(::SSL_get_ex_data(ssl, 0));
  stream->certificate_error_ = ::X509_STORE_CTX_get_error(check);
  const X509* const refused = ::X509_STORE_CTX_get_current_cert(check);
  if (refused == nullptr) return 0;
  try {
    stream->refused_ = describe_refused(refused, stream->certificate_error_);
  } catch (const std::bad_alloc&) {  // the reason alone is shown
  }
  return 0;
}

void TlsStream::on_message(int is_write, int, int type, const void*, std::size_t, SSL* ssl,
                           void* stream) {
  if (is_write != 0 || type != SSL3_RT_HANDSHAKE) return;
  if (++static_cast<TlsStream*>(stream)->messages_ <= kMostMessages) return;
  // Makes OpenSSL return instead of taking all that the socket has.
  ::SSL_set_shutdown(ssl, ::SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

}  // namespace offload::net
