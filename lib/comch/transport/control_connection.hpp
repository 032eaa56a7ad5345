#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comch/address.hpp"
#include "comch/transport/data_connection.hpp"
#include "comch/transport/slot_path.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "net/socket.hpp"
#include "protocol/control.hpp"
#include "protocol/frame.hpp"

namespace offload::comch {

/// A control message that was received.
struct ControlMessage {
  protocol::MessageId id;
  std::vector<std::byte> payload;
  std::vector<core::Fd> fds;  ///< none over a network
};

/// The time limit of each step of connecting.
inline constexpr core::Duration kHandshakeTime = std::chrono::seconds(3);

/// A connection that carries control messages, one frame each (docs/reference/wire-protocol.md):
/// setup and a few messages a second, so it may allocate. A transport makes one of the two derived
/// types below. One thread; only await() waits.
class ControlConnection {
 public:
  ControlConnection& operator=(ControlConnection&&) = delete;
  virtual ~ControlConnection() = default;

  /// Sends one message. Throws Error: connection_reset, or timed_out if the peer does not read.
  void send(protocol::MessageId id, std::span<const std::byte> payload) {
    send_frame(protocol::make_frame(id, payload));
  }
  /// Sends an error message, and logs a failure.
  void refuse(protocol::Refusal code, const std::string& text) noexcept;

  /// Returns the next message, or nothing if none has arrived. Throws Error: connection_reset if
  /// the peer is gone, bad_message for anything that is not exactly one control frame.
  virtual std::optional<ControlMessage> receive() = 0;
  /// Waits for the next message and returns it. Throws Error: timed_out after kHandshakeTime.
  ControlMessage await();

  /// Readable when receive() has something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  /// Returns "process 17", "10.0.0.1:4711".
  [[nodiscard]] virtual std::string peer_name() const = 0;

  /// Returns whether the peer, over a network that requires a key, has proven one; after that it
  /// may send its first message.
  [[nodiscard]] virtual bool proven() const noexcept { return false; }
  /// Returns the fingerprint() of the key that it has proven; empty if none is required.
  [[nodiscard]] virtual std::string proven_key() const { return {}; }
  /// Returns whether the peer may have the key, judging by its first bytes and without
  /// cryptography; nothing if too little has arrived. Only before the first receive().
  [[nodiscard]] virtual std::optional<bool> may_have_key() { return true; }
  /// Returns the address of a peer over a network; without a family if there is none.
  [[nodiscard]] virtual net::SocketAddress source() const { return {}; }

 protected:
  virtual void send_frame(std::span<const std::byte> frame) = 0;
};

/// The process at the other end, as the kernel reports it: SO_PEERCRED, unix(7).
struct PeerCredentials {
  int pid;
  unsigned uid;
};

/// A control connection within one machine: passes descriptors and knows the peer's process.
class LocalControlConnection : public ControlConnection {
 public:
  /// Sends a message with up to 4 descriptors (SCM_RIGHTS, unix(7)), which the caller keeps. Throws
  /// Error as send(), and invalid_value for more descriptors.
  virtual void send_with_fds(protocol::MessageId id, std::span<const std::byte> payload,
                             std::span<const int> fds) = 0;
  [[nodiscard]] virtual PeerCredentials peer() const = 0;
};

/// A control connection over a network, which can be turned into the endpoint of a channel's data.
class NetworkControlConnection : public ControlConnection {
 public:
  /// Returns another connection to `address`, the server's, that shares resources with this one;
  /// both ends have proven their key on it. Throws Error as Transport::connect does.
  [[nodiscard]] virtual std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const = 0;

  /// Turns this connection into a data endpoint, on the worker's side; waits for the server.
  /// `depth`: the channel's. Consumes the control connection. Throws Error.
  std::unique_ptr<DataEndpoint> request_data_endpoint(protocol::AttachChannel request,
                                                      std::uint32_t depth);
  /// Does the same on the server's side, and agrees to `request`. Throws Error.
  virtual std::unique_ptr<DataEndpoint> grant_data_endpoint(const protocol::AttachChannel& request,
                                                            std::uint32_t depth);
  /// Throws Error if the sides of a channel cannot write into each other's slots: not_supported
  /// over other transports than RDMA, and if this end's device has no atomic operations.
  virtual void require_slots() const;
  /// Make the two halves of such a channel. `channel`: this side's, which must outlive the result.
  /// Turns of `engine` carry out the worker's half. Throw Error as require_slots().
  [[nodiscard]] virtual std::unique_ptr<SlotPath> request_slot_path(
      protocol::AttachChannel request, const kernels::ChannelView& channel,
      progress::Engine& engine);
  [[nodiscard]] virtual std::unique_ptr<DataEndpoint> grant_slot_endpoint(
      const protocol::AttachChannel& request, const kernels::ChannelView& channel);

 protected:
  /// Sends the worker's request; returns the server's endpoint. Throws Error.
  std::vector<std::byte> exchange_endpoints(const protocol::AttachChannel& request);
  /// Opens this side's endpoint; returns its description for the peer. Throws Error.
  virtual std::vector<std::byte> open_data_endpoint(std::uint32_t depth) = 0;
  /// Connects the endpoint. `peer`: the result of the peer's open_data_endpoint(). Throws Error:
  /// bad_message for an invalid one.
  virtual std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) = 0;
};

/// Accepts the control connections of a server. One thread.
class Listener {
 public:
  /// Returns whether to accept a connection of that peer over a network; called before any resource
  /// is used for it.
  using Admission = std::function<bool(const net::SocketAddress& peer)>;

  explicit Listener(Address address) : address_(std::move(address)) {}
  Listener& operator=(Listener&&) = delete;
  virtual ~Listener() = default;

  /// Sets the admission; without one, all are accepted.
  void set_admission(Admission admission) { admission_ = std::move(admission); }

  /// Returns the next connection, or null if there is none now.
  virtual std::unique_ptr<ControlConnection> accept() = 0;
  /// Readable when accept() has something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  /// Returns the address, with the port that was bound if port 0 was requested.
  [[nodiscard]] const Address& address() const noexcept { return address_; }

 protected:
  void set_port(std::uint16_t port) noexcept { address_.port = port; }
  [[nodiscard]] bool admits(const net::SocketAddress& peer) const {
    return !admission_ || admission_(peer);
  }

 private:
  Address address_;
  Admission admission_;
};

/// Parses `bytes`, a whole packet, as one frame. Throws Error (bad_message).
ControlMessage parse_packet(std::span<const std::byte> bytes);

}  // namespace offload::comch
