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

/// One control message as it was received.
struct ControlMessage {
  protocol::MessageId id;
  std::vector<std::byte> payload;
  std::vector<core::Fd> fds;  ///< none over a network
};

/// How long a step of connecting may take.
inline constexpr core::Duration kHandshakeTime = std::chrono::seconds(3);

/// A connection that carries control messages, one frame each (docs/reference/wire-protocol.md):
/// setup and a few messages a second, so it may allocate. What a transport makes is one of the two
/// derived types below. One thread; only await() waits.
class ControlConnection {
 public:
  ControlConnection() = default;
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;
  virtual ~ControlConnection() = default;

  /// Sends one message. Throws Error: connection_reset, or timed_out when the peer does not read.
  void send(protocol::MessageId id, std::span<const std::byte> payload) {
    send_frame(protocol::make_frame(id, payload));
  }
  /// Sends an error message; what fails is logged.
  void refuse(protocol::Refusal code, const std::string& text) noexcept;

  /// The next message, nothing if none has come. Throws Error: connection_reset when the peer is
  /// gone, bad_message for anything that is not exactly one control frame.
  virtual std::optional<ControlMessage> receive() = 0;
  /// The same, waiting for it. Throws Error (timed_out) after kHandshakeTime.
  ControlMessage await();

  /// Readable when receive() has something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  /// "process 17", "10.0.0.1:4711"
  [[nodiscard]] virtual std::string peer_name() const = 0;

  /// Over a network that takes a key: whether the peer has proven one, after which it may send its
  /// first message.
  [[nodiscard]] virtual bool proven() const noexcept { return false; }
  /// The same: whether what the peer has sent so far can be a holder's of the key, found out
  /// without any cryptography; nothing if too little has come. For before the first receive().
  [[nodiscard]] virtual std::optional<bool> may_have_key() { return true; }
  /// The address of a peer over a network; of no family where there is none.
  [[nodiscard]] virtual net::SocketAddress source() const { return {}; }

 protected:
  virtual void send_frame(std::span<const std::byte> frame) = 0;
};

/// The process at the other end, as the kernel tells it: SO_PEERCRED, unix(7).
struct PeerCredentials {
  int pid;
  unsigned uid;
};

/// A control connection within one machine: passes descriptors and knows the peer's process.
class LocalControlConnection : public ControlConnection {
 public:
  /// send() with up to 4 descriptors beside the message (SCM_RIGHTS, unix(7)); they stay the
  /// caller's. Throws Error (invalid_value) for more.
  virtual void send_with_fds(protocol::MessageId id, std::span<const std::byte> payload,
                             std::span<const int> fds) = 0;
  [[nodiscard]] virtual PeerCredentials peer() const = 0;
};

/// A control connection over a network: an endpoint for a channel's data can be made out of one.
class NetworkControlConnection : public ControlConnection {
 public:
  /// Another connection to `address`, the server's, that shares with this one what can be shared;
  /// both ends have proven their key on it.
  /// Throws Error as Transport::connect.
  [[nodiscard]] virtual std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const = 0;

  /// The worker's half of making this connection a data endpoint; waits for the server's half.
  /// `depth`: the channel's. The control connection is used up. Throws Error.
  std::unique_ptr<DataEndpoint> request_data_endpoint(protocol::AttachChannel request,
                                                      std::uint32_t depth);
  /// The server's half, which agrees to `request`. Throws Error.
  virtual std::unique_ptr<DataEndpoint> grant_data_endpoint(const protocol::AttachChannel& request,
                                                            std::uint32_t depth);
  /// The same for a channel whose sides write into each other's slots: `channel`, this side's,
  /// which outlives what is returned. The worker's half is carried out by turns of `engine`. Throw
  /// Error: not_supported over what is not RDMA.
  [[nodiscard]] virtual std::unique_ptr<SlotPath> request_slot_path(
      protocol::AttachChannel request, const kernels::ChannelView& channel,
      progress::Engine& engine);
  [[nodiscard]] virtual std::unique_ptr<DataEndpoint> grant_slot_endpoint(
      const protocol::AttachChannel& request, const kernels::ChannelView& channel);

 protected:
  /// Sends the worker's request; returns the server's endpoint. Throws Error.
  std::vector<std::byte> exchange_endpoints(const protocol::AttachChannel& request);
  /// Opens this side's endpoint; returns what the peer has to know of it. Throws Error.
  virtual std::vector<std::byte> open_data_endpoint(std::uint32_t depth) = 0;
  /// Connects it. `peer`: what the peer's open_data_endpoint() returned. Throws Error (bad_message)
  /// for what that never returns.
  virtual std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) = 0;
};

/// Where a server's control connections come in. One thread.
class Listener {
 public:
  /// Whether to take a connection of that peer over a network, asked before anything is spent on
  /// it.
  using Admission = std::function<bool(const net::SocketAddress& peer)>;

  explicit Listener(Address address) : address_(std::move(address)) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  /// Without one, all are taken.
  void set_admission(Admission admission) { admission_ = std::move(admission); }

  /// The next connection, null if there is none now.
  virtual std::unique_ptr<ControlConnection> accept() = 0;
  /// Readable when accept() has something to do.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  /// With the port that was bound, if any port was asked for (0).
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
