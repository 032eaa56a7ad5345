#include "comch/transport/tcp/stream.hpp"

#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Of TLS 1.3 with AES-128-GCM (RFC 8446 B.4), which the kernel and most processors do fastest.
constexpr std::array<unsigned char, 2> kCipherSuite{0x13, 0x01};
constexpr const char* kCipherSuiteName = "TLS_AES_128_GCM_SHA256";
/// A record's content at most (RFC 8446 5.1).
constexpr std::size_t kRecord = 16 * 1024;
/// What OpenSSL reads at once, where it is what decrypts.
constexpr std::size_t kReadAhead = 64 * 1024;
/// The front of an identity; the key's fingerprint follows.
constexpr std::string_view kIdentity = "dpu-gpu-offload worker ";
/// A record's header, and the longest first message of a worker's (some 300 bytes).
constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMostOfClientHello = 2048;

std::string identity_of(const Key& key) {
  return std::string(kIdentity) + fingerprint(key);
}

/// Why the last call of OpenSSL failed, in its words.
std::string openssl_error() {
  const unsigned long code = ::ERR_get_error();
  const char* const reason = ::ERR_reason_error_string(code);
  ::ERR_clear_error();
  return reason != nullptr ? reason : "the connection ended";
}

/// The key as OpenSSL takes it: a session to resume. What is handed over is not the key itself, so
/// that a proof over RDMA and one here have nothing in common. Null if there is no memory.
SSL_SESSION* session_of(SSL* ssl, const Key& key) {
  constexpr std::string_view kLabel = "dpu-gpu-offload TLS 1.3 PSK";
  protocol::Mac secret = hmac(key, {std::as_bytes(std::span(kLabel))});
  SSL_SESSION* session = ::SSL_SESSION_new();
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(ssl, kCipherSuite.data());
  const bool made =
      session != nullptr && cipher != nullptr &&
      ::SSL_SESSION_set1_master_key(session, reinterpret_cast<unsigned char*>(secret.data()),
                                    secret.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, cipher) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  ::OPENSSL_cleanse(secret.data(), secret.size());
  if (made) return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

const Keyring& keys_of(const SSL* ssl) {
  return *static_cast<const Keyring*>(SSL_get_app_data(ssl));
}

/// A worker's: the key to offer, with its identity (SSL_set_psk_use_session_callback(3)).
int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_length,
                SSL_SESSION** session) {
  // OpenSSL copies it before the call for another connection can change it.
  thread_local std::string identity;
  try {
    const Key& key = keys_of(ssl).keys().front();
    identity = identity_of(key);
    *session = session_of(ssl, key);
  } catch (const std::exception&) {
    *session = nullptr;
  }
  if (*session == nullptr) return 0;
  *id = reinterpret_cast<const unsigned char*>(identity.data());
  *id_length = identity.size();
  return 1;
}

/// A server's: the key that the peer's identity names, if it has that.
int find_session(SSL* ssl, const unsigned char* id, std::size_t id_length, SSL_SESSION** session) {
  *session = nullptr;
  const std::string_view named(reinterpret_cast<const char*>(id), id_length);
  try {
    for (const Key& key : keys_of(ssl).keys()) {
      if (named == identity_of(key)) *session = session_of(ssl, key);
    }
  } catch (const std::exception&) {
    return 0;
  }
  return 1;
}

struct ContextDeleter {
  void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
};

/// What all connections of the process have in common.
SSL_CTX* context() {
  static const auto made = [] {
    std::unique_ptr<SSL_CTX, ContextDeleter> context(::SSL_CTX_new(::TLS_method()));
    SSL_CTX* const raw = context.get();
    if (raw == nullptr || ::SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 ||
        ::SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) != 1 ||
        ::SSL_CTX_set_ciphersuites(raw, kCipherSuiteName) != 1 ||
        SSL_CTX_set1_groups_list(raw, "X25519:P-256") != 1 ||
        ::SSL_CTX_set_num_tickets(raw, 0) != 1) {
      throw Error(ErrorCode::unexpected, "TLS: " + openssl_error());
    }
    ::SSL_CTX_set_options(raw, SSL_OP_ENABLE_KTLS | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_CTX_set_psk_use_session_callback(raw, use_session);
    ::SSL_CTX_set_psk_find_session_callback(raw, find_session);
    ::SSL_CTX_set_default_read_buffer_len(raw, kReadAhead);
    // As core::ShutdownSignals does: OpenSSL writes with write(2), which has no MSG_NOSIGNAL.
    ::signal(SIGPIPE, SIG_IGN);
    return context;
  }();
  return made.get();
}

}  // namespace

/// A record's worth of what send() was given, until OpenSSL has taken it.
struct Stream::Buffer {
  std::array<std::byte, kRecord> bytes;
  std::size_t size = 0;
};

void Stream::SslDeleter::operator()(ssl_st* ssl) const noexcept {
  if (::SSL_is_init_finished(ssl) == 1) static_cast<void>(::SSL_shutdown(ssl));
  ::ERR_clear_error();
  ::SSL_free(ssl);
}

Stream::Stream(core::Fd socket) noexcept : socket_(std::move(socket)) {}

Stream::Stream(core::Fd socket, End end, const Keyring& keys)
    : socket_(std::move(socket)),
      ssl_(::SSL_new(context())),
      kernel_sends_(false),
      kernel_receives_(false),
      is_server_(end == End::server),
      unsent_(std::make_unique<Buffer>()) {
  if (!ssl_ || ::SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
    throw Error(ErrorCode::no_memory, "TLS: " + openssl_error());
  }
  SSL_set_app_data(ssl_.get(), const_cast<Keyring*>(&keys));
  if (is_server_) {
    ::SSL_set_accept_state(ssl_.get());
  } else {
    key_ = fingerprint(keys.keys().front());
    ::SSL_set_connect_state(ssl_.get());
    // A server that takes no key would have to show a certificate, and none is trusted.
    ::SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
  }
}

Stream::Stream(Stream&&) noexcept = default;
Stream::~Stream() = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  ssl_ = std::move(other.ssl_);  // which says goodbye on the socket before that is closed
  socket_ = std::move(other.socket_);
  kernel_sends_ = other.kernel_sends_;
  kernel_receives_ = other.kernel_receives_;
  is_server_ = other.is_server_;
  key_ = std::move(other.key_);
  unsent_ = std::move(other.unsent_);
  return *this;
}

bool Stream::handshake() {
  if (!ssl_ || ::SSL_is_init_finished(ssl_.get()) == 1) return true;
  ::ERR_clear_error();
  errno = 0;
  const int result = ::SSL_do_handshake(ssl_.get());
  const int error = ::SSL_get_error(ssl_.get(), result);
  if (result == 1) {
    if (::SSL_session_reused(ssl_.get()) != 1) {
      throw Error(ErrorCode::not_permitted, "TLS: no key was proven");
    }
    kernel_sends_ = BIO_get_ktls_send(::SSL_get_wbio(ssl_.get())) != 0;
    kernel_receives_ = BIO_get_ktls_recv(::SSL_get_rbio(ssl_.get())) != 0;
    if (!kernel_receives_) ::SSL_set_read_ahead(ssl_.get(), 1);
    SSL_set_app_data(ssl_.get(), nullptr);
    return true;
  }
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  const bool reset = error == SSL_ERROR_SYSCALL;
  const std::string why = reset && errno != 0 ? core::describe_errno(errno) : openssl_error();
  if (is_server_) {
    throw Error(reset ? ErrorCode::connection_reset : ErrorCode::not_permitted,
                "TLS: " + why + ": the peer proves no key of this server's");
  }
  throw Error(ErrorCode::connection_aborted, "TLS: " + why +
                                                 ": the server does not have this worker's key " +
                                                 key_ + ", or somebody is between the two");
}

bool Stream::wants_to_send() const noexcept {
  return ssl_ && ::SSL_want(ssl_.get()) == SSL_WRITING;
}

std::optional<bool> Stream::names_a_key(const Keyring& keys) const {
  std::array<char, kRecordHeader + kMostOfClientHello> first;
  const auto received = ::recv(fd(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (received <= 0) return false;
  const std::string_view text(first.data(), static_cast<std::size_t>(received));
  std::size_t wanted = kRecordHeader;
  if (text.size() >= kRecordHeader) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    constexpr unsigned char kHandshake = 22;  // ContentType, RFC 8446 B.1
    wanted += static_cast<std::size_t>(byte(3)) << 8 | byte(4);
    if (byte(0) != kHandshake || wanted > first.size()) return false;
  }
  const bool whole = text.size() >= wanted;
  // Until then the socket is not readable, socket(7).
  const int low = whole ? 1 : static_cast<int>(wanted);
  static_cast<void>(::setsockopt(fd(), SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
  if (!whole) return std::nullopt;
  return std::ranges::any_of(keys.keys(), [&](const Key& key) {
    return text.find(identity_of(key)) != std::string_view::npos;
  });
}

/// What recv or sendmsg would have returned in place of a result of SSL_read or SSL_write.
ssize_t Stream::result_of(int result) noexcept {
  if (result > 0) return result;
  const int system = errno;
  const int error = ::SSL_get_error(ssl_.get(), result);
  const bool at_the_end =
      ::ERR_GET_REASON(::ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  ::ERR_clear_error();
  if (error == SSL_ERROR_ZERO_RETURN || at_the_end) return 0;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    errno = EAGAIN;
  } else {
    errno = error == SSL_ERROR_SYSCALL && system != 0 ? system : EBADMSG;
  }
  return -1;
}

ssize_t Stream::receive(std::span<std::byte> to) noexcept {
  if (kernel_receives_) {
    const auto received = ::recv(fd(), to.data(), to.size(), MSG_DONTWAIT);
    // The kernel hands a record that is not data, such as the peer's goodbye, to OpenSSL alone.
    if (!ssl_ || received >= 0 || errno != EIO) return received;
  }
  errno = 0;
  const auto size = static_cast<int>(std::min<std::size_t>(to.size(), INT32_MAX));
  return result_of(::SSL_read(ssl_.get(), to.data(), size));
}

ssize_t Stream::send(std::span<const iovec> pieces) noexcept {
  if (!kernel_sends_) return send_through_ssl(pieces);
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  return ::sendmsg(fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Record by record, each gathered in `unsent_`. A record that OpenSSL could not send whole has to
/// be given to it again as it was: the caller's next bytes are its own, which are skipped.
ssize_t Stream::send_through_ssl(std::span<const iovec> pieces) noexcept {
  ssize_t total = 0;
  std::size_t offset = 0;  // in pieces.front(), of what is not in the buffer yet
  const auto take = [&](std::size_t size, std::byte* to) {
    while (size != 0) {
      const std::size_t part = std::min(size, pieces.front().iov_len - offset);
      if (to != nullptr) {
        std::memcpy(to, static_cast<const std::byte*>(pieces.front().iov_base) + offset, part);
        to += part;
      }
      size -= part;
      offset += part;
      if (offset != pieces.front().iov_len) continue;
      pieces = pieces.subspan(1);
      offset = 0;
    }
  };
  const auto left = [&] {
    std::size_t sum = 0;
    for (const iovec& piece : pieces) {
      sum += piece.iov_len;
      if (sum >= kRecord + offset) break;
    }
    return std::min(sum - offset, kRecord);
  };
  take(unsent_->size, nullptr);
  while (true) {
    if (unsent_->size == 0) {
      unsent_->size = left();
      if (unsent_->size == 0) return total;
      take(unsent_->size, unsent_->bytes.data());
    }
    errno = 0;
    const auto sent =
        result_of(::SSL_write(ssl_.get(), unsent_->bytes.data(), static_cast<int>(unsent_->size)));
    if (sent <= 0) {
      if (sent == 0) errno = EPIPE;
      return total != 0 ? total : -1;
    }
    total += sent;
    unsent_->size = 0;  // a record goes whole
  }
}

std::string Stream::describe() const {
  if (!ssl_) return "without encryption";
  return fmt::format("TLS 1.3, {}, {}", kCipherSuiteName,
                     kernel_sends_ && kernel_receives_ ? "by the kernel"
                     : kernel_sends_                   ? "sent by the kernel"
                                                       : "by OpenSSL");
}

std::string describe_break(int error) {
  if (error != EBADMSG) return core::describe_errno(error);
  return "TLS: what arrives is not what the other end sent: it is damaged, or somebody is between "
         "the two";
}

}  // namespace offload::comch
