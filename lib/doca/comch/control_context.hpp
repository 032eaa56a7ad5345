#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "doca/comch/connection.hpp"
#include "doca/comch/place.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"

namespace offload::doca {

/// A control message to send. The submission sends or copies it.
class MessageTask final : public progress::Task {
 public:
  using ContextType = ControlContext;

  std::shared_ptr<ComchConnection> connection;
  std::span<const std::byte> message;

  void let_go() noexcept { connection.reset(); }

 private:
  friend ControlContext;
  std::vector<std::byte> copy_;  ///< of a message that has to wait
};

/// Receives the events of a ControlContext, in turns of its engine. It may stop the context.
class ControlEvents {
 public:
  virtual void on_message(ComchConnection& connection, std::span<std::byte> message) = 0;
  /// A client has connected to this server, or disconnected.
  virtual void on_connection(ComchConnection& connection, bool connected) = 0;
  /// The peer has a new consumer, or one has stopped.
  virtual void on_consumer(ComchConnection& connection, std::uint32_t id, bool is_new) = 0;
  /// The server of this client is gone.
  virtual void on_lost() = 0;

 protected:
  ~ControlEvents() = default;
};

/// The common part of the server and the client of control messages.
///
/// A message is sent when the peer has room for it in its receive queue; until then its task waits,
/// in order. A task completes when the message was handed to the system. A stop sends what was
/// handed over, and waits up to half a second for the peers to close their ends.
///
/// Thread rules: as Context.
class ControlContext : public progress::Context {
 public:
  static constexpr std::uint32_t kMostMessage = 4080;
  static constexpr std::uint32_t kMostQueue = 8192;

  ControlContext(std::string name, ControlEvents& events)
      : Context(std::move(name), Turns::always), events_(&events) {}

  /// The most bytes of a message, and of the messages that the peer may send without credit. Set
  /// while the context is idle.
  [[nodiscard]] std::uint32_t longest_message() const noexcept { return longest_message_; }
  void set_longest_message(std::uint32_t bytes) noexcept { longest_message_ = bytes; }
  [[nodiscard]] std::uint32_t receive_queue() const noexcept { return receive_queue_; }
  void set_receive_queue(std::uint32_t messages) noexcept { receive_queue_ = messages; }

  /// Returns the connection at an address that a program has; null if there is none.
  [[nodiscard]] std::shared_ptr<ComchConnection> find(
      const ComchConnection* connection) const noexcept;
  [[nodiscard]] std::span<const std::shared_ptr<ComchConnection>> connections() const noexcept {
    return connections_;
  }
  [[nodiscard]] ControlEvents& events() const noexcept { return *events_; }
  /// Ends a connection.
  void disconnect(ComchConnection& connection) noexcept;

  /// The consumers and producers of its connections. Any thread.
  std::atomic<std::size_t> users{0};

 protected:
  Step on_stop() noexcept override;
  void on_abandon() noexcept override { close_all(); }
  core::Status on_submit(progress::Task& task) noexcept final;
  void on_flush() noexcept final {}
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override;

  /// Work of the server or of the client in a turn while it runs. Returns whether there was any.
  virtual bool poll_streams() = 0;
  /// Returns whether streams are being opened.
  [[nodiscard]] virtual bool has_pending_streams() const noexcept = 0;
  /// Returns whether control messages have to wait for streams that are being opened: they are
  /// received behind the consumers that the sender had before.
  [[nodiscard]] virtual bool holds_messages() const noexcept { return false; }
  /// Takes the streams that the peer has opened before it sent a message.
  virtual void take_streams() {}
  /// Carries out a change of this side's consumers. Throws only std::bad_alloc.
  virtual void announce(ComchConnection& connection, std::uint32_t consumer, bool is_new) = 0;
  /// The peer, a server, has a consumer.
  virtual void reach_consumer(ComchConnection&, std::uint32_t) {}
  /// Closes what belongs to no connection.
  virtual void close_streams() noexcept = 0;
  /// A connection has ended without a stop.
  virtual void on_closed(ComchConnection& connection) = 0;

  [[nodiscard]] Introduction introduction(std::uint64_t token) const noexcept;
  ComchConnection& add(std::unique_ptr<Link> link, std::uint64_t token, const Introduction& peer,
                       bool is_server);
  /// Throws Error: bad_message, unsupported_version.
  static Introduction read_introduction(std::span<const std::byte> payload);

 private:
  bool poll_connection(ComchConnection& connection);
  bool poll_ending();
  bool announce_changes(ComchConnection& connection);
  void take_frame(ComchConnection& connection, const Link::Frame& frame);
  static void check_message(bool is_valid);
  /// Sends waiting messages, in order, as long as the peer and the system have room. Returns
  /// whether there is room for one more.
  bool send_waiting(ComchConnection& connection);
  /// Sends the message of a task, for which the peer has room.
  static void send_one(ComchConnection& connection, progress::Task& task,
                       std::span<const std::byte> message);
  /// Closes a connection and forgets it.
  void remove(ComchConnection& connection) noexcept;
  void close_all() noexcept;
  bool complete_ended(std::size_t most);

  ControlEvents* events_;
  std::uint32_t longest_message_ = kMostMessage;
  std::uint32_t receive_queue_ = 64;
  std::vector<std::shared_ptr<ComchConnection>> connections_;
  struct Ended {
    MessageTask* task;
    core::Status status;
  };
  Fifo<Ended> ended_;  ///< tasks to complete
  core::TimePoint end_of_stop_{};
};

/// Listens for clients at a place, under a name.
class ServerContext final : public ControlContext, progress::EventHandler {
 public:
  static constexpr std::size_t kMostClients = 512;

  ServerContext(std::string pci_address, std::string name, ControlEvents& events);
  ~ServerContext() override;

 private:
  /// A stream that has not said yet what it is for.
  struct Newcomer {
    std::unique_ptr<Link> link;
    core::TimePoint until;
    bool is_open = false;
  };

  void on_events(std::uint32_t) override { may_accept_ = true; }
  Step on_start() override;
  bool poll_streams() override;
  [[nodiscard]] bool has_pending_streams() const noexcept override {
    return may_accept_ || !newcomers_.empty();
  }
  void take_streams() override;
  void announce(ComchConnection& connection, std::uint32_t consumer, bool is_new) override;
  void close_streams() noexcept override;
  void on_closed(ComchConnection& connection) override {
    events().on_connection(connection, false);
  }

  bool accept_newcomers();
  bool accept_one();
  /// Watches the listener's sockets, or pauses that while clients have to wait.
  void watch_listener(bool is_on);
  /// Returns whether it has ended as a newcomer.
  bool poll_newcomer(Newcomer& newcomer);
  void greet(std::unique_ptr<Link> link, std::span<const std::byte> hello);
  void attach(std::unique_ptr<Link> link, std::span<const std::byte> payload);

  std::string pci_address_;
  std::string name_;
  std::optional<StreamListener> listener_;
  bool may_accept_ = false;
  bool is_watching_ = false;
  std::vector<Newcomer> newcomers_;
};

/// Connects to a server. It is starting until it is connected.
class ClientContext final : public ControlContext {
 public:
  ClientContext(std::string pci_address, std::string name, ControlEvents& events);
  ~ClientContext() override;

 private:
  /// A stream that is being opened.
  struct Opening {
    Dial dial;
    std::uint32_t consumer = 0;  ///< whose data it is for; 0: the connection itself
    bool is_own = false;         ///< the consumer is of this side
  };

  Step on_start() override;
  bool on_poll(std::size_t most) override;
  bool poll_streams() override;
  [[nodiscard]] bool has_pending_streams() const noexcept override {
    return !openings_.empty() || greeting_ != nullptr;
  }
  [[nodiscard]] bool holds_messages() const noexcept override { return !openings_.empty(); }
  void announce(ComchConnection& connection, std::uint32_t consumer, bool is_new) override;
  void reach_consumer(ComchConnection& connection, std::uint32_t consumer) override;
  void close_streams() noexcept override;
  void on_closed(ComchConnection&) override { events().on_lost(); }

  bool poll_start();
  /// Returns whether it has ended. If it fails, the consumer's start fails, too.
  bool poll_opening(Opening& opening);
  void open(ComchConnection& connection, std::uint32_t consumer, bool is_own);
  void give_up(ComchConnection& connection, std::uint32_t consumer, bool is_own,
               const core::Error& error);

  std::string pci_address_;
  std::string name_;
  std::optional<ComchPlace> place_;
  std::vector<std::unique_ptr<Opening>> openings_;
  std::unique_ptr<Link> greeting_;  ///< until the server's answer
  core::TimePoint start_limit_{};   ///< from the first turn on
};

}  // namespace offload::doca
