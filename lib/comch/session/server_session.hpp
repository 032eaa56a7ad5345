#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comch/session/pending_connections.hpp"
#include "comch/session/worker_channel.hpp"
#include "progress/engine.hpp"

namespace offload::comch {

/// The server's side of the control channel: lets workers attach, gives each channels of its own,
/// and notices when one is gone.
///
/// What a worker can reach is the memory of its own attachment, which nobody reads once that is
/// over: a worker that was taken for dead, and is not, harms nobody.
///
/// One thread: the engine's.
class ServerSession {
 public:
  /// What the server's program does when workers come and go.
  class Observer {
   public:
    /// A worker serves its channels from now on; assign() says which of them get requests.
    virtual void on_worker_attached(AttachedWorker worker) = 0;
    /// It asks to be let go: release() is to follow, once it has answered all and has no channel.
    virtual void on_worker_leaving(WorkerId worker) = 0;
    /// It is gone: it was let go, or killed, silent, or in breach of the protocol.
    virtual void on_worker_lost(WorkerId worker, WorkerLoss loss) = 0;
    /// It asks the server to end.
    virtual void on_shutdown_requested() = 0;
    /// Its application's message, whose bytes last as long as the call. Ignored unless overridden.
    /// It does not throw: an error here, such as send_user_message()'s `full`, ends the attachment.
    virtual void on_user_message(WorkerId /*worker*/, std::span<const std::byte> /*bytes*/) {}

   protected:
    ~Observer() = default;
  };

  /// What each worker gets. Channels have the shape that `depth` and the lengths say; each service
  /// has equally many, side by side.
  struct Offer {
    std::vector<int> numa_nodes;  ///< by channel: where its memory is; -1: anywhere
    std::uint32_t depth;
    std::uint32_t max_message_length;   ///< of a request
    std::uint32_t max_response_length;  ///< of a response to a shorter request
    std::vector<std::string> services;
    core::Duration keep_alive;
    std::size_t most_workers;  ///< attached at once
  };

  /// Listens at once. Throws Error.
  ServerSession(progress::Engine& engine, const Address& address, Offer offer, Observer& observer);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// Throws Error if this process cannot have the memory of one worker's channels: each worker
  /// would be refused.
  void require_channel_memory() const;

  /// Sends keep-alives and ends what is late by `now`, the engine's run_time(); to be called at
  /// next_tick() or before.
  void tick(core::RunTime now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// With the port that was bound, if any port was asked for.
  [[nodiscard]] const Address& address() const noexcept { return pending_.address(); }

  // Of a worker that is gone already, these do nothing.

  /// Tells the worker how many channels it serves.
  void assign(WorkerId worker, std::uint32_t channels);
  /// Tells it to stop: nothing is asked of it any more. on_worker_lost() follows.
  void release(WorkerId worker);
  /// Ends its attachment: a data connection to it has ended.
  void drop(WorkerId worker, const std::string& reason);
  /// The same, and tells it why.
  void refuse(WorkerId worker, protocol::Refusal code, const std::string& text);
  /// Sends the worker's application `bytes`, 1 to protocol::kMaxUserMessage. Throws Error:
  /// invalid_value for another length, full while it has UserMessages::kMostUntaken to take
  /// (nothing was sent: try again later), not_connected for a worker that does not serve.
  void send_user_message(WorkerId worker, std::span<const std::byte> bytes);
  /// For the log: "3, process 17"
  [[nodiscard]] std::string name_of(WorkerId worker) const;

  /// Tells all workers to stop. done() once they have, or are gone.
  void start_shutdown(protocol::ShutdownReason reason);
  [[nodiscard]] bool shutting_down() const noexcept { return shutting_down_; }
  [[nodiscard]] bool done() const noexcept { return shutting_down_ && attachments_.empty(); }

 private:
  class Attachment;

  void on_first_message(std::unique_ptr<ControlConnection> connection,
                        const ControlMessage& message);
  void attach_channel(NetworkControlConnection& connection, const ControlMessage& message);
  [[nodiscard]] Attachment* find(WorkerId worker) const;
  /// Calls `action`(Attachment&) for each, which may end it.
  template <class Action>
  void for_each(Action action);
  void on_worker_gone(WorkerId worker, const std::string& reason);

  progress::Engine* engine_;
  Offer offer_;
  Observer* observer_;
  PendingConnections pending_;
  std::map<WorkerId, std::unique_ptr<Attachment>> attachments_;
  WorkerId last_id_ = 0;
  core::TimePoint next_tick_{};  ///< by the clock: after a pause, a keep-alive goes at once
  bool shutting_down_ = false;
};

}  // namespace offload::comch
