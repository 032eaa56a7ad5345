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

/// The server's side of the control channel: lets workers attach, gives each its own channels, and
/// detects when a worker is gone.
///
/// A worker can access only the memory of its own attachment, which is no longer read after the
/// attachment has ended: a worker that was wrongly taken for dead does no harm.
///
/// One thread: the engine's.
class ServerSession {
 public:
  /// Is told when workers attach, detach and end.
  class Observer {
   public:
    /// A worker serves its channels from now on; assign() chooses those that get requests.
    virtual void on_worker_attached(AttachedWorker worker) = 0;
    /// The worker asks to be detached: call release() when it has answered all and has no channel.
    virtual void on_worker_leaving(WorkerId worker) = 0;
    /// The worker is gone: it was detached or killed, was silent, or violated the protocol.
    virtual void on_worker_lost(WorkerId worker, WorkerLoss loss) = 0;
    /// The worker asks the server to shut down.
    virtual void on_shutdown_requested() = 0;
    /// A message of the worker's application, valid during the call. Ignored unless overridden.
    /// Must not throw: an error here, such as `full` of send_user_message(), ends the attachment.
    virtual void on_user_message(WorkerId /*worker*/, std::span<const std::byte> /*bytes*/) {}

   protected:
    ~Observer() = default;
  };

  /// The channels that each worker gets, with this depth and these lengths. Each service has the
  /// same number of channels, side by side.
  struct Offer {
    std::vector<int> numa_nodes;  ///< by channel: where its memory is; -1: anywhere
    std::uint32_t depth;
    std::uint32_t max_message_length;   ///< of a request
    std::uint32_t max_response_length;  ///< of a response to a shorter request
    std::vector<std::string> services;
    core::Duration keep_alive;
    std::size_t most_workers;  ///< attached at once
  };

  /// Listens immediately. Throws Error.
  ServerSession(progress::Engine& engine, const Address& address, Offer offer, Observer& observer);
  ~ServerSession();
  ServerSession& operator=(ServerSession&&) = delete;

  /// Throws Error if this process cannot allocate the memory of one worker's channels, in which
  /// case each worker would be refused.
  void require_channel_memory() const;

  /// Sends keep-alives and ends attachments that are late at `now`, the engine's run_time(). Must
  /// be called at next_tick() or before.
  void tick(core::RunTime now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// Returns the address, with the port that was bound if port 0 was requested.
  [[nodiscard]] const Address& address() const noexcept { return pending_.address(); }

  // These do nothing for a worker that is already gone.

  /// Tells the worker how many channels it serves.
  void assign(WorkerId worker, std::uint32_t channels);
  /// Tells a worker that gets no more requests to stop. on_worker_lost() follows.
  void release(WorkerId worker);
  /// Ends the attachment of a worker, because a data connection to it has ended.
  void drop(WorkerId worker, const std::string& reason);
  /// Ends the attachment of a worker, and tells it the reason.
  void refuse(WorkerId worker, protocol::Refusal code, const std::string& text);
  /// Sends the worker's application `bytes`, 1 to protocol::kMaxUserMessage. Throws Error:
  /// invalid_value for another length, full while it has not taken UserMessages::kMostUntaken
  /// messages (nothing was sent: try again later), not_connected for a worker that is not attached.
  void send_user_message(WorkerId worker, std::span<const std::byte> bytes);
  /// Returns the name of a worker for the log: "3, process 17"
  [[nodiscard]] std::string name_of(WorkerId worker) const;

  /// Tells all workers to stop. done() is true when they have stopped or are gone.
  void start_shutdown(protocol::ShutdownReason reason);
  [[nodiscard]] bool shutting_down() const noexcept { return shutting_down_; }
  [[nodiscard]] bool done() const noexcept { return shutting_down_ && attachments_.empty(); }

 private:
  class Attachment;

  void on_first_message(std::unique_ptr<ControlConnection> connection,
                        const ControlMessage& message);
  void attach_channel(NetworkControlConnection& connection, const ControlMessage& message);
  [[nodiscard]] Attachment* find(WorkerId worker) const;
  /// Calls `action`(Attachment&) for each attachment; the call may end it.
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
