#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/transport/control_connection.hpp"
#include "core/log.hpp"
#include "net/source/source_limits.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// A server's listener and the connections from it that have not said what they are for. A peer
/// over a network proves first that it has the key.
///
/// Anybody may connect over a network, so what strangers can take has bounds: so many connections
/// at once (kMost), of which the source with the most loses one for the next, who has said nothing
/// before who is proving a key; a few handshakes a second for each source and for all
/// (net::SourceLimits), which what cannot be a holder of the key never gets to; kGreetTime for the
/// first message. Who has proven the key makes room for nobody.
///
/// One thread: the engine's.
class PendingConnections final : progress::EventHandler {
 public:
  /// The most connections: so many descriptors strangers can take.
  static constexpr std::size_t kMost = 64;

  /// Gets the first message of a connection whose peer may send one, which is pending no more.
  using OnFirstMessage = std::function<void(std::unique_ptr<ControlConnection> connection,
                                            const ControlMessage& message)>;

  /// Listens at once. Throws Error: as Transport::listen.
  PendingConnections(progress::Engine& engine, const Address& address,
                     OnFirstMessage on_first_message);
  ~PendingConnections();
  PendingConnections(const PendingConnections&) = delete;
  PendingConnections& operator=(const PendingConnections&) = delete;

  /// With the port that was bound, if any port was asked for.
  [[nodiscard]] const Address& address() const noexcept { return listener_->address(); }

  /// Accepts again where that could not be done, and drops those that have been silent for too
  /// long; to be called every second or so.
  void tick(core::RunTime now);

  /// Logs that a connection is refused, and tells its peer, whose message was read: a socket that
  /// is closed with something unread takes what it sent last from its peer (tcp(7)).
  void refuse(ControlConnection& connection, protocol::Refusal code, const std::string& text);

 private:
  /// In the order in which they make room.
  enum class Stage : std::uint8_t { silent, proving, proven };
  struct Pending;

  void on_events(std::uint32_t epoll_events) override;
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
