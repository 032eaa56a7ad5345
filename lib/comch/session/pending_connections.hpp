#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/transport/control_connection.hpp"
#include "core/log.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// A server's listener and the connections from it that have not said what they are for. A peer
/// over a network proves first that it has the key; where there are too many, those that have not
/// go.
///
/// One thread: the engine's.
class PendingConnections final : progress::EventHandler {
 public:
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
  void tick(core::TimePoint now);

  /// Logs that a connection is refused, and tells its peer, whose message was read: a socket that
  /// is closed with something unread takes what it sent last from its peer (tcp(7)).
  void refuse(ControlConnection& connection, protocol::Refusal code, const std::string& text);

 private:
  struct PendingConnection {
    std::unique_ptr<ControlConnection> connection;
    core::TimePoint since;
    std::optional<protocol::Nonce> challenge;  ///< until it has proved that it has the key
  };

  void on_events(std::uint32_t epoll_events) override;
  void accept();
  bool drop_unproven();
  [[nodiscard]] bool receive(PendingConnection& pending);
  void log(core::LogLevel level, const std::string& what);

  progress::Engine* engine_;
  OnFirstMessage on_first_message_;
  std::unique_ptr<Listener> listener_;
  std::vector<PendingConnection> pending_;
  core::RateLimit log_limit_;
};

}  // namespace offload::comch
