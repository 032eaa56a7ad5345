#include "net/tls/context.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "core/fd.hpp"
#include "net/tls/error.hpp"
#include "net/tls/psk.hpp"
#include "net/tls/revocation.hpp"

namespace offload::net {
namespace {

using core::Error;
using core::ErrorCode;

/// AES-128 first: it is the fastest where the processor has instructions for it, and all three are
/// in the kernel's TLS.
constexpr const char* kCipherSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/// A key that has no hash of its own goes with SHA-256 (RFC 8446, 4.2.11).
constexpr const char* kPskCipherSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
/// OpenSSL's default has finite fields of up to 8192 bits too, with which a stranger could make a
/// server compute for milliseconds a connection.
constexpr const char* kGroups = "X25519:P-256:P-384";

/// OpenSSL would ask for a passphrase at the terminal. `asked`: a bool that says that it wants one.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

void require(int result, const std::string& action) {
  if (result != 1) throw_openssl_error(action);
}

/// OpenSSL opens the file itself, and would wait for the writer of a FIFO.
void require_regular_file(const std::string& path, const std::string& action) {
  static_cast<void>(core::open_regular_file(path, action));
}

/// Reads the key from the descriptor whose mode was looked at, so that both are of the same file.
void use_private_key(SSL_CTX* context, const std::string& path) {
  const std::string action = "cannot use the private key " + path;
  const core::Fd fd = core::open_regular_file(path, action);
  struct stat status {};
  core::check_errno(::fstat(fd.get(), &status), action);
  if ((status.st_mode & S_IRWXO) != 0) {
    throw Error(
        ErrorCode::not_permitted,
        "the private key " + path + " is accessible to others than its owner: chmod 600 it");
  }
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> file(::BIO_new_fd(fd.get(), BIO_NOCLOSE),
                                                             &::BIO_free_all);
  bool has_passphrase = false;
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_bio_PrivateKey(file.get(), nullptr, &no_passphrase, &has_passphrase),
      &::EVP_PKEY_free);
  if (has_passphrase) {
    ::ERR_clear_error();
    throw Error(ErrorCode::not_supported,
                action + ": it has a passphrase; remove it with openssl pkey -in " + path +
                    " -out NEW_FILE");
  }
  if (!key) throw_openssl_error(action);
  require(::SSL_CTX_use_PrivateKey(context, key.get()), action);
}

/// Does the same as SSL_set_tlsext_host_name, which is a macro with a C cast.
void send_name(SSL* ssl, const std::string& name) {
  require(static_cast<int>(::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                      const_cast<char*>(name.c_str()))),
          "cannot send the server name " + name);
}

}  // namespace

void TlsContext::FreeSsl::operator()(SSL* ssl) const noexcept {
  ::SSL_free(ssl);
}

TlsContext::TlsContext(bool is_server)
    : is_server_(is_server),
      context_(::SSL_CTX_new(is_server ? ::TLS_server_method() : ::TLS_client_method()),
               &::SSL_CTX_free) {
  if (!context_) throw_openssl_error("cannot set up TLS", ErrorCode::no_memory);
  SSL_CTX* const context = context_.get();
  // TLS 1.3 has neither renegotiation nor compression.
  require(static_cast<int>(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)), "TLS 1.3");
  require(::SSL_CTX_set_ciphersuites(context, kCipherSuites), "TLS cipher suites");
  require(static_cast<int>(SSL_CTX_set1_groups_list(context, kGroups)), "TLS groups");
  ::SSL_CTX_set_options(context,
                        SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_ENABLE_KTLS);
  require(::SSL_CTX_set_num_tickets(context, 0), "TLS tickets");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A record that the socket did not take whole is sent on from wherever its bytes are by then, and
  // an idle connection holds no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A record takes one system call instead of two: its header is not read alone.
  SSL_CTX_set_read_ahead(context, 1);
}

TlsContext TlsContext::server(const TlsCertificate& own, const std::string& client_ca_file,
                              const std::string& client_crl_file) {
  TlsContext made(true);
  made.use_certificate(own);
  if (client_ca_file.empty()) return made;
  made.require_peer(client_ca_file);
  if (!client_crl_file.empty()) use_revocation_lists(made.context_.get(), client_crl_file);
  // Tells clients which of their certificates to send. The context owns the list.
  auto* const names = ::SSL_load_client_CA_file(client_ca_file.c_str());
  if (names == nullptr) throw_openssl_error("cannot use the authorities in " + client_ca_file);
  ::SSL_CTX_set_client_CA_list(made.context_.get(), names);
  return made;
}

TlsContext TlsContext::client(const std::string& server_name, const std::string& ca_file,
                              const std::optional<TlsCertificate>& own,
                              const std::string& crl_file) {
  TlsContext made(false);
  made.require_peer(ca_file);
  if (!crl_file.empty()) use_revocation_lists(made.context_.get(), crl_file);
  made.expect_name(server_name);
  if (own) made.use_certificate(*own);
  return made;
}

TlsContext TlsContext::psk_server(std::vector<PreSharedKey> keys) {
  TlsContext made(true);
  require(::SSL_CTX_set_ciphersuites(made.context_.get(), kPskCipherSuites), "TLS cipher suites");
  use_keys(made.context_.get(), std::move(keys));
  return made;
}

TlsContext TlsContext::psk_client(PreSharedKey key) {
  TlsContext made(false);
  require(::SSL_CTX_set_ciphersuites(made.context_.get(), kPskCipherSuites), "TLS cipher suites");
  // No authority is trusted: a server that sends a certificate, as it has not the key, is refused.
  ::SSL_CTX_set_verify(made.context_.get(), SSL_VERIFY_PEER, nullptr);
  std::vector<PreSharedKey> keys;
  keys.push_back(std::move(key));
  use_keys(made.context_.get(), std::move(keys));
  return made;
}

void TlsContext::use_certificate(const TlsCertificate& own) {
  SSL_CTX* const context = context_.get();
  const std::string action = "cannot use the certificate " + own.chain_file;
  require_regular_file(own.chain_file, action);
  require(::SSL_CTX_use_certificate_chain_file(context, own.chain_file.c_str()),
          action + " (it must be PEM)");
  use_private_key(context, own.key_file);
  require(::SSL_CTX_check_private_key(context),
          "the private key " + own.key_file + " is not that of " + own.chain_file);
}

void TlsContext::require_peer(const std::string& ca_file) {
  SSL_CTX* const context = context_.get();
  if (ca_file.empty()) {
    require(::SSL_CTX_set_default_verify_paths(context), "cannot use the system's authorities");
  } else {
    const std::string action = "cannot use the authorities in " + ca_file;
    require_regular_file(ca_file, action);
    require(::SSL_CTX_load_verify_file(context, ca_file.c_str()), action);
  }
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

void TlsContext::expect_name(const std::string& host) {
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  const std::string name = in_brackets ? host.substr(1, host.size() - 2) : host;
  X509_VERIFY_PARAM* const wanted = ::SSL_CTX_get0_param(context_.get());
  if (::X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1) return;
  ::ERR_clear_error();
  ::X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (name.empty()) throw Error(ErrorCode::invalid_value, "a TLS server needs a name");
  require(::X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), name.size()),
          "cannot check for the server name " + name);
  server_name_ = name;
}

std::unique_ptr<SSL, TlsContext::FreeSsl> TlsContext::make_ssl() const {
  std::unique_ptr<SSL, FreeSsl> ssl(::SSL_new(context_.get()));
  if (!ssl) throw_openssl_error("cannot start TLS", ErrorCode::no_memory);
  if (is_server_) {
    ::SSL_set_accept_state(ssl.get());
  } else {
    ::SSL_set_connect_state(ssl.get());
  }
  if (!server_name_.empty()) send_name(ssl.get(), server_name_);
  return ssl;
}

}  // namespace offload::net
