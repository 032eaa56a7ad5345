#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "comch/transport/control_connection.hpp"
#include "protocol/control.hpp"

/// The control channel: on one machine a Unix-domain socket; else a connection over TCP or RDMA, on
/// which both sides prove that they have the key before anything else is said. Setup and a few
/// messages a second; it may allocate.
namespace offload::comch {

/// One end of it. Move-only. One thread.
class ControlSocket {
 public:
  explicit ControlSocket(std::unique_ptr<ControlConnection> wire) noexcept
      : wire_(std::move(wire)) {}

  /// Connects to a server; over a network with the proofs, which takes kHandshakeTime a step.
  /// Throws Error: not_connected, not_found, timed_out or connection_reset while there is none,
  /// again while it does not accept, not_permitted if it belongs to another user than this one and
  /// root, or has another key, or no key is given and it is not on this machine.
  static ControlSocket connect(const Address& address);
  /// The same again to the same server, over a network, with what the two can share.
  [[nodiscard]] ControlSocket connect_again(const Address& address) const;

  /// Sends one message with up to 3 descriptors, local ones alone. Throws Error: connection_reset,
  /// or timed_out when the peer lets its messages lie unread.
  void send(protocol::MessageId id, std::span<const std::byte> payload,
            std::span<const int> fds = {});
  void refuse(protocol::Refusal code, const std::string& text) noexcept;

  /// The next message, nothing if none has come. Throws Error: connection_reset when the peer is
  /// gone, bad_message for anything that is not exactly one control frame.
  std::optional<ControlMessage> receive() { return wire_->receive(); }
  /// The same, waiting for it. Throws Error (timed_out) after kHandshakeTime.
  ControlMessage await();

  /// The worker's half of making a connection for a channel's messages; waits for the server's.
  /// The control channel is used up. Throws Error.
  std::unique_ptr<DataEndpoint> request_line(protocol::AttachChannel request, std::uint32_t depth);
  /// The server's half, which agrees to `request`. Throws Error.
  std::unique_ptr<DataEndpoint> grant_line(const protocol::AttachChannel& request,
                                           std::uint32_t depth);

  /// Whether the peer is on this machine, and is known by its process.
  [[nodiscard]] bool local() const { return wire_->credentials().has_value(); }
  /// Of a local one.
  [[nodiscard]] PeerCredentials peer() const { return wire_->credentials().value(); }
  /// "process 17", "10.0.0.1:4711"
  [[nodiscard]] std::string peer_name() const { return wire_->peer_name(); }
  [[nodiscard]] int fd() const noexcept { return wire_->fd(); }

 private:
  std::unique_ptr<ControlConnection> wire_;
};

/// The listening end.
class ControlListener {
 public:
  /// Throws Error: in_use where a server lives, or where the path is not a socket; not_permitted
  /// for an address that others can reach, if there is no key.
  explicit ControlListener(const Address& address);

  /// The next connection, nothing if none can be had. Local ones that are not of this user or root
  /// are closed.
  std::optional<ControlSocket> accept();
  [[nodiscard]] int fd() const noexcept { return door_->fd(); }
  /// With the port that it has, if any was asked for.
  [[nodiscard]] const Address& address() const noexcept { return address_; }

 private:
  Address address_;
  std::unique_ptr<Listener> door_;
};

}  // namespace offload::comch
