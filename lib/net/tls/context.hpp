#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace offload::net {

/// A certificate in PEM: the chain, beginning with the certificate, and the private key, which only
/// its owner and group can read, and which has no passphrase.
struct TlsCertificate {
  std::string chain_file;
  std::string key_file;
};

/// An external pre-shared key (RFC 8446, 4.2.11) with its name. The name is sent in the clear.
struct PreSharedKey {
  std::string identity;        ///< 1 to 128 bytes
  std::vector<std::byte> key;  ///< 16 to 256 bytes
};

/// The settings of one end of TLS 1.3 connections: its role, its certificate or keys, and its
/// requirements for the peer. No other version, no tickets, no early data; Diffie-Hellman in every
/// handshake. Copies share the settings. Any thread may make streams from it.
///
/// The constructing functions throw Error, which names the file: not_permitted for a private key
/// that others can read, invalid_value if OpenSSL rejects it, or an error of the system.
class TlsContext {
 public:
  /// With `client_ca_file`, a client needs a certificate that one of its authorities has signed,
  /// and, with `client_crl_file`, that no list there revokes (use_revocation_lists).
  static TlsContext server(const TlsCertificate& own, const std::string& client_ca_file = {},
                           const std::string& client_crl_file = {});
  /// The server's certificate has to be signed by an authority in `ca_file` (empty: the system's)
  /// and be for `server_name`, a DNS name or an IP address (IPv6: brackets allowed); with
  /// `crl_file`, no list there may revoke it.
  static TlsContext client(const std::string& server_name, const std::string& ca_file = {},
                           const std::optional<TlsCertificate>& own = {},
                           const std::string& crl_file = {});
  /// The keys alone say who the peer is: no certificate is sent or taken. A server takes any of
  /// its keys, one at least.
  static TlsContext psk_server(std::vector<PreSharedKey> keys);
  static TlsContext psk_client(PreSharedKey key);

  [[nodiscard]] bool is_server() const noexcept { return is_server_; }

  /// A new connection's state, in this role. For TlsStream. Throws Error (no_memory).
  struct FreeSsl {
    void operator()(SSL* ssl) const noexcept;
  };
  [[nodiscard]] std::unique_ptr<SSL, FreeSsl> make_ssl() const;

 private:
  explicit TlsContext(bool is_server);
  void use_certificate(const TlsCertificate& own);
  void require_peer(const std::string& ca_file);
  void expect_name(const std::string& host);

  bool is_server_;
  std::shared_ptr<SSL_CTX> context_;
  std::string server_name_;  ///< sent with the first message; empty: none
};

}  // namespace offload::net
