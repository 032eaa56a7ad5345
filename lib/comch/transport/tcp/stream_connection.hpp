#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/keys/pre_shared_keys.hpp"
#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/stream.hpp"
#include "net/tls/context.hpp"

namespace offload::comch {

/// A peer that does not acknowledge data of a control or data connection within this time is taken
/// for dead. In addition, net turns SO_KEEPALIVE on, for connections that send nothing.
inline constexpr core::Duration kDeadPeerTimeout = std::chrono::seconds(15);

/// Connects a non-blocking stream to a server, which has then proven its key. Throws Error.
using ConnectStream = TcpStream (*)(const Address& address);

/// Returns the stream of a worker's `socket`, which must be connected to a server and non-blocking.
/// Unless `address` is insecure, both ends have proven their key by TLS. `name`: the server's, for
/// errors. Throws Error: connection_aborted if the server proves no key, timed_out at `until`.
TcpStream secure_stream(core::Fd socket, const Address& address, const std::string& name,
                        core::TimePoint until);

/// Makes the streams of a server's accepted sockets. One thread.
class ServerStreams {
 public:
  explicit ServerStreams(const Address& address)
      : keys_(address.takes_key() ? address.keys : nullptr) {}

  /// Makes a stream with TLS and the latest keys, unless the address is insecure. Throws Error.
  TcpStream make(core::Fd socket);
  /// Returns the keys of which a peer must prove one; null if the address is insecure.
  [[nodiscard]] const std::shared_ptr<const Keyring>& keys() const noexcept { return keys_; }

 private:
  std::shared_ptr<const Keyring> keys_;
  std::optional<net::TlsContext> context_;
  unsigned generation_ = 0;  ///< of the keys in it
};

/// A control connection on a connected, non-blocking stream of any family, which carries frame
/// after frame. A data endpoint uses its stream, unless a derived class makes another.
class StreamControlConnection : public NetworkControlConnection {
 public:
  /// `connect` makes the streams of connect_another(). `keys`: for a server, whose peer must prove
  /// one by TLS; else null.
  StreamControlConnection(TcpStream stream, ConnectStream connect,
                          std::shared_ptr<const Keyring> keys = nullptr) noexcept
      : stream_(std::move(stream)), connect_(connect), keys_(std::move(keys)) {}

  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return stream_.fd(); }
  [[nodiscard]] std::string peer_name() const override;
  [[nodiscard]] net::SocketAddress source() const override;
  [[nodiscard]] bool proven() const noexcept override { return proven_; }
  [[nodiscard]] std::string proven_key() const override {
    return fingerprint_in(stream_.proven_identity());
  }
  [[nodiscard]] std::optional<bool> may_have_key() override;
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override;

 protected:
  /// Returns another stream to the server to which this one is connected; several servers may have
  /// its name.
  [[nodiscard]] TcpStream connect_stream_again(const Address& address) const;

 private:
  void send_frame(std::span<const std::byte> frame) override;
  std::vector<std::byte> open_data_endpoint(std::uint32_t) override { return {}; }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override;

  TcpStream stream_;
  ConnectStream connect_;
  std::shared_ptr<const Keyring> keys_;  ///< null: no key is required, or one was proven
  bool proven_ = false;
  std::vector<std::byte> input_;  ///< received bytes that are not a whole message yet
};

}  // namespace offload::comch
