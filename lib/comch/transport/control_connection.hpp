#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comch/address.hpp"
#include "comch/transport/data_connection.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "protocol/frame.hpp"

/// What the control channel is, network by network. ControlSocket and ControlListener have what is
/// the same for all.
namespace offload::comch {

/// One control message as it came.
struct ControlMessage {
  protocol::MessageId id;
  std::vector<std::byte> payload;
  std::vector<core::Fd> fds;
};

/// Who is at the other end, by the kernel's word.
struct PeerCredentials {
  int pid;
  unsigned uid;
};

/// How long a step of connecting may take.
inline constexpr core::Duration kHandshakeTime = std::chrono::seconds(3);

/// One end of a connection that carries control messages. One thread; nothing waits.
class ControlConnection {
 public:
  ControlConnection() = default;
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;
  virtual ~ControlConnection() = default;

  /// Sends a whole frame; `fds` on one machine alone. Throws Error: connection_reset, timed_out
  /// when the peer lets its messages lie unread.
  virtual void send(std::span<const std::byte> frame, std::span<const int> fds) = 0;
  /// The next message, nothing if none has come. Throws Error: connection_reset when the peer is
  /// gone, bad_message for anything that is not exactly one control frame.
  virtual std::optional<ControlMessage> receive() = 0;
  /// Readable when receive() has something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  [[nodiscard]] virtual std::string peer_name() const = 0;
  /// Nothing where the kernel does not know: the peer is on another machine.
  [[nodiscard]] virtual std::optional<PeerCredentials> credentials() const { return std::nullopt; }
  /// Another connection to `address`, the server's, that shares with this one what can be shared.
  /// Throws Error as the first did.
  [[nodiscard]] virtual std::unique_ptr<ControlConnection> connect_again(
      const Address& address) const = 0;

  // To make a connection for the messages of a channel out of this one, which is used up then.

  /// What the peer's end of it has to know (AttachChannel). `depth`: the channel's. Throws Error.
  virtual std::vector<std::byte> begin_line(std::uint32_t depth) = 0;
  /// `peer`: the same of the peer. Throws Error (bad_message) for what no peer says.
  virtual std::unique_ptr<DataEndpoint> end_line(std::span<const std::byte> peer) = 0;
};

/// Where such connections come in. One thread.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  /// The next one, null if none can be had.
  virtual std::unique_ptr<ControlConnection> accept() = 0;
  [[nodiscard]] virtual int fd() const noexcept = 0;
  [[nodiscard]] virtual std::uint16_t port() const noexcept { return 0; }
};

// Those of one machine: a Unix-domain socket, which keeps message boundaries, carries descriptors
// and tells who the peer is. Both ends are of one user, or root's.

/// Throws Error: not_connected, not_found or again while there is no server, not_permitted if it
/// belongs to another user.
std::unique_ptr<ControlConnection> connect_locally(const Address& address);
/// Takes over the path from a server that is no more; a socket file has mode 0600 and goes with the
/// object. Throws Error: in_use where a server lives, or where the path is not a socket.
std::unique_ptr<Listener> listen_locally(const Address& address);

// Those over TCP and RDMA. They take a key where others can reach them.

/// Throws Error: not_connected, not_found, timed_out, not_permitted without a key off loopback.
std::unique_ptr<ControlConnection> connect_tcp(const Address& address);
/// A connection that is there.
std::unique_ptr<ControlConnection> make_tcp_wire(core::Fd connection);
/// Throws Error: in_use, not_permitted as above.
std::unique_ptr<Listener> listen_tcp(const Address& address);

/// Throws Error as connect_tcp, and not_supported where there is no RDMA device.
std::unique_ptr<ControlConnection> connect_rdma(const Address& address);
std::unique_ptr<Listener> listen_rdma(const Address& address);

/// Parses `bytes`, a whole packet, as one frame. Throws Error (bad_message).
ControlMessage parse_packet(std::span<const std::byte> bytes);

}  // namespace offload::comch
