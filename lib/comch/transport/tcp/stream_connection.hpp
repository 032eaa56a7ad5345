#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/stream.hpp"
#include "net/tls/context.hpp"

namespace offload::comch {

/// What was sent on a control or data connection has to be acknowledged within this, else the peer
/// is taken for dead. Beside it net turns SO_KEEPALIVE on, for connections that send nothing.
inline constexpr core::Duration kDeadPeerTimeout = std::chrono::seconds(15);

/// Connects a non-blocking stream to a server; the peer has proven its key. Throws Error.
using ConnectStream = Stream (*)(const Address& address);

/// Returns the stream of a worker's `socket`, which is connected to a server and non-blocking.
/// Unless `address` is insecure, both ends have proven their key by TLS. `name`: the server's, for
/// errors. Throws Error: connection_aborted if the server proves no key, timed_out at `until`.
Stream secure_stream(core::Fd socket, const Address& address, const std::string& name,
                     core::TimePoint until);

/// Makes the streams of a server's accepted sockets. One thread.
class ServerStreams {
 public:
  explicit ServerStreams(const Address& address)
      : keys_(address.takes_key() ? address.keys : nullptr) {}

  /// With TLS, and the keys as they were read last, unless the address is insecure. Throws Error.
  Stream make(core::Fd socket);
  /// The keys of which a peer has to prove one; null if the address is insecure.
  [[nodiscard]] const std::shared_ptr<const Keyring>& keys() const noexcept { return keys_; }

 private:
  std::shared_ptr<const Keyring> keys_;
  std::optional<net::TlsContext> context_;
  unsigned generation_ = 0;  ///< of the keys in it
};

/// A control connection on a connected, non-blocking stream of any family: frame after frame. A
/// data endpoint is its stream, unless a derived class makes another.
class StreamControlConnection : public NetworkControlConnection {
 public:
  /// `connect` makes the streams of connect_another(). `keys`: of a server whose peer is to prove
  /// one by TLS, else null.
  StreamControlConnection(Stream stream, ConnectStream connect,
                          std::shared_ptr<const Keyring> keys = nullptr) noexcept
      : stream_(std::move(stream)), connect_(connect), keys_(std::move(keys)) {}

  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return stream_.fd(); }
  [[nodiscard]] std::string peer_name() const override;
  [[nodiscard]] net::SocketAddress source() const override;
  [[nodiscard]] bool proven() const noexcept override { return proven_; }
  [[nodiscard]] std::optional<bool> may_have_key() override;
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override;

 protected:
  /// A stream to the server that this one is connected to, whose name may be that of several.
  [[nodiscard]] Stream connect_stream_again(const Address& address) const;

 private:
  void send_frame(std::span<const std::byte> frame) override;
  std::vector<std::byte> open_data_endpoint(std::uint32_t) override { return {}; }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override;

  Stream stream_;
  ConnectStream connect_;
  std::shared_ptr<const Keyring> keys_;  ///< null: there is nothing to prove, or it was proven
  bool proven_ = false;
  std::vector<std::byte> input_;  ///< bytes that came and are no whole message yet
};

}  // namespace offload::comch
