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

/// A channel as a worker has it: the server's own memory, or memory of this machine that a proxy of
/// the server connects to it.
struct AttachedChannel {
  channel::SharedChannel channel;       ///< what a back end serves
  std::string service{};                ///< by which it answers the requests
  std::unique_ptr<ChannelLink> link{};  ///< null where the server is on this machine
};

/// The worker's side of the control channel: one attachment to one server. One thread: the
/// engine's.
class WorkerSession final : progress::EventHandler {
 public:
  /// What the worker's program does at the steps of its attachment.
  class Observer {
   public:
    /// The server's channels: start serving them. When it returns, the server gets the consumers'
    /// ids. An Error that it throws ends the attachment: on_lost follows.
    virtual void on_channels(std::vector<AttachedChannel> channels) = 0;
    /// The server has them all: requests come on those that it assigns.
    virtual void on_attached() = 0;
    /// Requests come on so many channels from now on; 0: this worker stands by.
    virtual void on_assignment(std::uint32_t channels) = 0;
    /// The server's application's message, whose bytes last as long as the call. Ignored unless
    /// overridden. It does not throw: an error here, such as send_user_message()'s `full`, ends the
    /// attachment.
    virtual void on_user_message(std::span<const std::byte> /*bytes*/) {}
    /// The server has got all its answers and wants this worker to stop; then call complete().
    virtual void on_start_shutdown(protocol::ShutdownReason reason) = 0;
    /// The attachment is over. `refused`: the server refused, speaks another version, or wants more
    /// memory than it may have; `reason`: the same for people.
    virtual void on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) = 0;

   protected:
    ~Observer() = default;
  };

  /// Connects and greets; over a network that waits for the server's proof. `most_memory`: bytes
  /// that the channels may take of this machine, all together; a server that wants more is refused.
  /// Throws Error: what connect_to() throws.
  WorkerSession(progress::Engine& engine, const Address& address, const protocol::Hello& hello,
                std::uint64_t most_memory, Observer& observer);
  ~WorkerSession();
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  /// Sends keep-alives and ends what is late by `now`, the engine's run_time(); to be called at
  /// next_tick() or before.
  void tick(core::RunTime now);
  [[nodiscard]] core::TimePoint next_tick() const noexcept { return next_tick_; }

  /// Asks the server to let this worker go, once its channels are another's or it has answered all:
  /// on_start_shutdown() follows.
  void request_detach() { send_empty(protocol::MessageId::detach); }
  /// Asks the server to end.
  void request_shutdown() { send_empty(protocol::MessageId::start_shutdown); }
  /// Sends the server's application `bytes`, 1 to protocol::kMaxUserMessage. Throws Error:
  /// invalid_value for another length, full while it has UserMessages::kMostUntaken to take
  /// (nothing was sent: try again later), not_connected unless attached.
  void send_user_message(std::span<const std::byte> bytes);
  /// Says that this worker has stopped.
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
