#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/proxy/channel_link.hpp"
#include "comch/session/user_messages.hpp"
#include "comch/transport/control_connection.hpp"
#include "progress/engine.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// A channel on the worker's side: the server's memory, or memory of this machine that a proxy
/// connects to the server.
struct AttachedChannel {
  channel::SharedChannel channel;       ///< which a back end serves
  std::string service{};                ///< that processes its requests
  std::unique_ptr<ChannelLink> link{};  ///< null where the server is on this machine
};

/// The worker's side of the control channel: one attachment to one server. One thread: the
/// engine's.
class WorkerSession final : progress::EventHandler {
 public:
  /// Is told about each step of the attachment.
  class Observer {
   public:
    /// The server has sent its channels: start serving them. When it returns, the server gets the
    /// ids of the consumers. An Error that it throws ends the attachment: on_lost() follows.
    virtual void on_channels(std::vector<AttachedChannel> channels) = 0;
    /// The server has all ids: requests arrive on the channels that it assigns.
    virtual void on_attached() = 0;
    /// Requests arrive on this number of channels from now on; 0: this worker is a stand-by.
    virtual void on_assignment(std::uint32_t channels) = 0;
    /// A message of the server's application, valid during the call. Ignored unless overridden.
    /// Must not throw: an error here, such as `full` of send_user_message(), ends the attachment.
    virtual void on_user_message(std::span<const std::byte> /*bytes*/) {}
    /// The server has all its answers and wants this worker to stop; then call complete().
    virtual void on_start_shutdown(protocol::ShutdownReason reason) = 0;
    /// The attachment has ended. `refused`: the server refused, has another version, or wants more
    /// memory than it may use; `reason`: the reason as text.
    virtual void on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) = 0;

   protected:
    ~Observer() = default;
  };

  /// Connects and sends the greeting; over a network it waits for the server's proof.
  /// `most_memory`: bytes of this machine that all channels together may use; a server that wants
  /// more is refused. Throws Error as connect_to() does.
  WorkerSession(progress::Engine& engine, const Address& address, const protocol::Hello& hello,
                std::uint64_t most_memory, Observer& observer);
  ~WorkerSession();
  WorkerSession& operator=(WorkerSession&&) = delete;

  /// Sends keep-alives and ends a late attachment at `now`, the engine's run_time(). Must be called
  /// at next_tick() or before.
  void tick(core::RunTime now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// Asks the server to detach this worker. on_start_shutdown() follows, when another worker has
  /// its channels or it has answered all.
  void request_detach() { send_empty(protocol::MessageId::detach); }
  /// Asks the server to shut down.
  void request_shutdown() { send_empty(protocol::MessageId::start_shutdown); }
  /// Sends the server's application `bytes`, 1 to protocol::kMaxUserMessage. Throws Error:
  /// invalid_value for another length, full while it has not taken UserMessages::kMostUntaken
  /// messages (nothing was sent: try again later), not_connected unless attached.
  void send_user_message(std::span<const std::byte> bytes);
  /// Tells the server that this worker has stopped.
  void complete();

 private:
  void on_events(std::uint32_t epoll_events) override;
  void handle(ControlMessage message);
  void take_welcome(const std::optional<protocol::Welcome>& welcome);
  void take_descriptor(ControlMessage message);
  [[nodiscard]] AttachedChannel attach(const protocol::ChannelDescriptor& descriptor,
                                       std::vector<core::Fd> fds) const;
  void reserve_memory(const protocol::ChannelDescriptor& descriptor);
  void request_consumer_id();
  void take_consumer_id(const std::optional<protocol::ExchangeConsumerId>& response);
  void take_user_message(std::span<const std::byte> payload);
  void send(protocol::MessageId id, std::span<const std::byte> payload);
  void send_empty(protocol::MessageId id) { send(id, {}); }
  void lose(const std::string& reason, std::optional<protocol::Refusal> refused = {});

  progress::Engine* engine_;
  Observer* observer_;
  Address address_;
  std::uint32_t most_channels_;
  bool writes_slots_;
  std::uint64_t memory_left_;
  std::unique_ptr<ControlConnection> connection_;
  NetworkControlConnection* network_;  ///< the connection, if it is one; else it is a local one
  std::optional<protocol::Welcome> welcome_;
  std::vector<AttachedChannel> channels_;
  std::uint32_t ids_requested_ = 0;  ///< of the channels, from the first on
  std::uint32_t ids_received_ = 0;
  core::Duration keep_alive_;
  core::RunTime heard_;
  core::TimePoint next_tick_{};  ///< by the clock: after a pause, a keep-alive goes at once
  std::uint64_t keep_alives_ = 0;
  UserMessages user_messages_;
  bool attached_ = false;
  bool lost_ = false;
};

}  // namespace offload::comch
