#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comch/transport/control_connection.hpp"
#include "core/log.hpp"
#include "net/source/source_limits.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// A server's listener and its connections that have not sent their first message yet. A peer over
/// a network proves first that it has the key.
///
/// Because any host may connect over a network, unproven peers have limits: kMost connections at
/// once, where the source with the most loses one for the next, a silent one before one that is
/// proving a key; a few handshakes a second for each source and in total (net::SourceLimits), which
/// a peer that cannot have the key does not reach; and kGreetTime for the first message. A
/// connection that has proven the key is never closed to make room.
///
/// One thread: the engine's.
class PendingConnections final : progress::EventHandler {
 public:
  /// The maximum number of connections, and so of descriptors that unproven peers can use.
  static constexpr std::size_t kMost = 64;

  /// Receives the first message of a connection whose peer may send one; it is no longer pending.
  using OnFirstMessage = std::function<void(std::unique_ptr<ControlConnection> connection,
                                            const ControlMessage& message)>;

  /// Listens immediately. Throws Error as Transport::listen does.
  PendingConnections(progress::Engine& engine, const Address& address,
                     OnFirstMessage on_first_message);
  ~PendingConnections();
  PendingConnections& operator=(PendingConnections&&) = delete;

  /// Returns the address, with the port that was bound if port 0 was requested.
  [[nodiscard]] const Address& address() const noexcept { return listener_->address(); }

  /// Accepts again where that failed before, and drops connections that have been silent for too
  /// long; must be called about every second.
  void tick(core::RunTime now);

  /// Logs that a connection is refused, and tells its peer. The peer's message must have been read:
  /// closing a socket with unread data discards what was sent last to the peer (tcp(7)).
  void refuse(ControlConnection& connection, protocol::Refusal code, const std::string& text);

 private:
  /// In the order in which connections are closed to make room.
  enum class Stage : std::uint8_t { silent, proving, proven };
  struct Pending;

  void on_events(std::uint32_t) override { accept(); }
  [[nodiscard]] bool admit(const net::SocketAddress& peer);
  void accept();
  void take_in(std::unique_ptr<ControlConnection> connection);
  bool make_room();
  void receive(Pending& pending);
  [[nodiscard]] bool receive_proof(Pending& pending);
  void hand_on(Pending& pending, const ControlMessage& message);
  void drop(const Pending& pending);
  void log(core::LogLevel level, const std::string& who, const std::string& what);

  progress::Engine* engine_;
  OnFirstMessage on_first_message_;
  std::unique_ptr<Listener> listener_;
  net::SourceLimits limits_;
  std::vector<std::unique_ptr<Pending>> pending_;
  core::RateLimit log_limit_;
};

}  // namespace offload::comch
