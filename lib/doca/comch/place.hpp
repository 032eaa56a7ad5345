#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/keys/keyring.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "doca/comch/link.hpp"
#include "net/own_file.hpp"
#include "net/socket.hpp"
#include "net/tls/context.hpp"

namespace offload::doca {

/// The address at which the servers for a host's function and their clients meet.
///
/// By default it is a socket in the user's runtime folder, one for each function and server name.
/// OFFLOAD_DOCA_COMCH gives functions another one: "b1:00.0=tcp:HOST:PORT" or
/// "b1:00.0=unix:PATH", separated by commas. A network needs a key, whose file
/// OFFLOAD_DOCA_COMCH_KEY_FILE names.
struct ComchPlace {
  /// The place of the function with that PCI address and of a server's name. Throws Error:
  /// invalid_value for a malformed variable, not_permitted without a key.
  static ComchPlace of(const std::string& pci_address, const std::string& server_name);

  /// Finds the address of a network's host, for which the caller may have to wait. Throws Error:
  /// not_found.
  void resolve();
  [[nodiscard]] bool is_network() const noexcept { return path.empty(); }
  [[nodiscard]] std::string to_string() const;

  std::string path;  ///< of a socket; empty: a network
  std::string host;
  std::uint16_t port = 0;
  net::SocketAddress address;                  ///< of a network, once it is resolved
  std::shared_ptr<const comch::Keyring> keys;  ///< of a network
};

/// Accepts the streams of clients. One thread.
class StreamListener {
 public:
  /// Throws Error: in_use if another server is there.
  explicit StreamListener(const ComchPlace& place);

  /// Returns the next stream, whose handshake has to be continued; null if there is none. Throws
  /// Error if the system has no room for it now.
  std::unique_ptr<Link> accept();
  /// Readable when accept() has something to do.
  [[nodiscard]] const std::vector<core::Fd>& sockets() const noexcept { return sockets_; }

 private:
  std::vector<core::Fd> sockets_;
  std::optional<net::OwnFile> file_;
  std::optional<net::TlsContext> tls_;
};

/// A stream to a server that is being opened. It begins with the first poll(). One thread.
class Dial {
 public:
  /// `place`: resolved; it must live as long.
  explicit Dial(const ComchPlace& place) noexcept : place_(&place) {}

  /// Returns the link once it is open, else null; then the caller must call it again. It tries
  /// again while descriptors are lacking, or the queue of the server's socket is full. Throws
  /// Error: not_connected if there is no server, not_permitted if it does not have the key,
  /// timed_out three seconds after the first call.
  std::unique_ptr<Link> poll();

 private:
  bool connect();
  bool advance();

  const ComchPlace* place_;
  core::TimePoint limit_{};
  core::Fd socket_;  ///< until it is connected
  std::unique_ptr<Link> link_;
  std::optional<net::TlsContext> tls_;
};

}  // namespace offload::doca
