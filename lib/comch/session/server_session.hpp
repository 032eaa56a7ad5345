#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/session/control_socket.hpp"
#include "core/log.hpp"
#include "progress/engine.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// What the server's program does when its worker comes and goes.
class ServerSessionObserver {
 public:
  /// A worker serves all channels from now on. `lines`: if it is on another machine, one a channel,
  /// to its RemoteServers; else none.
  virtual void on_worker_attached(channel::Wakeup wakeup,
                                  std::vector<std::unique_ptr<DataEndpoint>> lines) = 0;
  /// It is gone: killed, silent, or at odds with the protocol.
  virtual void on_worker_lost() = 0;
  /// It asks the server to end.
  virtual void on_shutdown_requested() = 0;

 protected:
  ~ServerSessionObserver() = default;
};

/// The server's side of the control channel: lets one worker at a time attach, tells it about the
/// channels, and notices when it is gone.
///
/// A worker of this machine that is gone may still have its hands in the channels: a killed process
/// ends its GPU work after its sockets. So the next one is let in only once the former one's
/// process has ended, or is the same process, which says by connecting again that it has stopped.
/// One on another machine reaches no slot: its connections end with it.
///
/// One thread: the engine's.
class ServerSession final : progress::EventHandler {
 public:
  struct Offer {
    std::vector<channel::ChannelMemory*> channels;
    std::uint32_t max_message_length;
    std::string service;
    core::Duration keep_alive;
  };

  /// Listens at once. Throws Error.
  ServerSession(progress::Engine& engine, const Address& address, Offer offer,
                ServerSessionObserver& observer);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// Keep-alives and time-outs; to be called at least every next_tick().
  void tick(core::TimePoint now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// With the port that it has, if any was asked for.
  [[nodiscard]] const Address& address() const noexcept { return listener_.address(); }

  /// The line of a channel to the worker has ended: so has the worker.
  void line_lost(const std::string& reason) { drop(reason); }

  /// Tells the worker, if there is one, to stop. done() once it has, or is gone.
  void start_shutdown();
  [[nodiscard]] bool done() const noexcept { return shutting_down_ && !session_.has_value(); }

 private:
  /// Connected, and has not greeted yet.
  struct PendingConnection {
    ControlSocket socket;
    core::TimePoint since;
    std::optional<protocol::Nonce> challenge;  ///< until it has proved that it has the key
  };

  /// The worker: attached, or on the way to it.
  struct Session {
    ControlSocket socket;
    std::string name{};      ///< for people
    PeerCredentials peer{};  ///< of a local one
    core::Fd process{};      ///< its pidfd; invalid where there is none to be had
    channel::Wakeup wakeup = channel::Wakeup::none;
    protocol::Token token{};                             ///< for its lines
    std::vector<std::unique_ptr<DataEndpoint>> lines{};  ///< by channel, as far as they are there
    std::vector<bool> ready{};                           ///< by channel
    core::TimePoint heard{};
    bool attached = false;
  };

  void on_events(std::uint32_t epoll_events) override;
  void accept();
  bool send_away_a_stranger();
  void greet_pending();
  [[nodiscard]] bool greet(PendingConnection& pending);
  void admit(PendingConnection& pending, const ControlMessage& message);
  void attach_channel(PendingConnection& pending, const ControlMessage& message);
  void refuse(PendingConnection& pending, protocol::Refusal code, const std::string& text);
  [[nodiscard]] bool former_is_gone(const ControlSocket& pending);
  void offer_channels();
  void offer_channel(std::size_t index);
  void serve_session();
  void handle(const ControlMessage& message);
  void exchange_consumer_id(const std::optional<protocol::ExchangeConsumerId>& request);
  void refuse(protocol::Refusal code, const std::string& text);
  void drop(const std::string& reason);
  void log_pending(core::LogLevel level, const std::string& what);

  progress::Engine* engine_;
  ControlListener listener_;
  Offer offer_;
  ServerSessionObserver* observer_;
  std::vector<PendingConnection> pending_;
  core::RateLimit pending_log_;
  std::optional<Session> session_;
  PeerCredentials former_{};
  core::Fd former_process_;
  core::TimePoint next_tick_{};
  std::uint64_t keep_alives_ = 0;
  bool shutting_down_ = false;
};

}  // namespace offload::comch
