#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/session/peer_process.hpp"
#include "comch/session/pending_connections.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// The server's side of the control channel: lets one worker at a time attach, offers it the
/// channels, and notices when it is gone.
///
/// A worker of this machine that is gone may still access the channels: a killed process ends its
/// GPU work after its sockets. So the next one is let in only once the former one's process has
/// ended, or is the same process, which has stopped before it connects again. One on
/// another machine reaches no slot: its connections end with it.
///
/// One thread: the engine's.
class ServerSession {
 public:
  /// What the server's program does when its worker comes and goes.
  class Observer {
   public:
    /// A worker serves all channels from now on. `endpoints`: if it is on another machine, one a
    /// channel, to its ServerProxies; else none.
    virtual void on_worker_attached(channel::Wakeup wakeup,
                                    std::vector<std::unique_ptr<DataEndpoint>> endpoints) = 0;
    /// It is gone: killed, silent, or in breach of the protocol.
    virtual void on_worker_lost() = 0;
    /// It asks the server to end.
    virtual void on_shutdown_requested() = 0;

   protected:
    ~Observer() = default;
  };

  struct Offer {
    std::vector<channel::ChannelMemory*> channels;
    std::uint32_t max_message_length;
    std::string service;
    core::Duration keep_alive;
  };

  /// Listens at once. Throws Error.
  ServerSession(progress::Engine& engine, const Address& address, Offer offer, Observer& observer);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// Keep-alives and time-outs; to be called at least every next_tick().
  void tick(core::TimePoint now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// With the port that was bound, if any port was asked for.
  [[nodiscard]] const Address& address() const noexcept { return pending_.address(); }

  /// Ends the attachment of the worker, if there is one: a data connection to it has ended.
  void drop_worker(const std::string& reason);

  /// Tells the worker, if there is one, to stop. done() once it has, or is gone.
  void start_shutdown();
  [[nodiscard]] bool done() const noexcept { return shutting_down_ && !attachment_; }

 private:
  class Attachment;

  void on_first_message(std::unique_ptr<ControlConnection> connection,
                        const ControlMessage& message);
  void attach_channel(NetworkControlConnection& connection, const ControlMessage& message);
  [[nodiscard]] bool former_may_access(const ControlConnection& next) const;
  void on_worker_gone(const std::string& reason);

  progress::Engine* engine_;
  Offer offer_;
  Observer* observer_;
  PendingConnections pending_;
  std::unique_ptr<Attachment> attachment_;
  std::optional<PeerProcess> former_;  ///< the former worker's, if it was of this machine
  core::TimePoint next_tick_{};
  bool shutting_down_ = false;
};

}  // namespace offload::comch
