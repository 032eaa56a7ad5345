#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/session/server_session.hpp"
#include "comch/session/user_messages.hpp"

namespace offload::comch {

/// One worker's attachment, from its greeting until it has ended; then the session destroys it, at
/// the end of the public call or event that detected the end.
class ServerSession::Attachment final : progress::EventHandler, progress::Pollable {
 public:
  /// `session` owns it. `connection` is the one to the worker.
  Attachment(ServerSession& session, WorkerId id, ControlConnection& connection,
             const protocol::Hello& hello);
  ~Attachment();
  Attachment& operator=(Attachment&&) = delete;

  /// "3, process 17", "4, 10.0.0.1:4711"
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns the fingerprint() of the key that the worker has proven; empty if none is required.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  /// Returns whether the worker serves its channels.
  [[nodiscard]] bool attached() const noexcept { return attached_; }

  [[nodiscard]] bool told_to_stop() const noexcept { return told_to_stop_; }
  /// Returns how it ended; only after its end.
  [[nodiscard]] WorkerLoss loss() const noexcept;

  /// Takes the connection and welcomes the worker; its channels follow, one in each turn of the
  /// engine.
  void start(std::unique_ptr<ControlConnection> connection);
  void tick(core::RunTime now);
  void assign(std::uint32_t channels);
  void send_user_message(std::span<const std::byte> bytes);
  void start_shutdown(protocol::ShutdownReason reason);
  void drop(const std::string& reason);
  void refuse_and_drop(protocol::Refusal code, const std::string& text);

  /// Returns whether `request` has this session's token and is for the next channel.
  [[nodiscard]] bool expects(const protocol::AttachChannel& request) const;
  /// Uses `connection` for the data of that channel.
  void attach_channel(NetworkControlConnection& connection, const protocol::AttachChannel& request);

 private:
  void on_events(std::uint32_t epoll_events) override;
  /// Active while channels remain to be made.
  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override { return {}; }
  void disarm() override {}

  void read_messages();
  void handle(const ControlMessage& message);
  void take_user_message(std::span<const std::byte> payload);
  [[nodiscard]] std::size_t channel_count() const noexcept {
    return session_->offer_.numa_nodes.size();
  }
  void make_channel();
  void offer_channel(std::size_t index);
  void exchange_consumer_id(const std::optional<protocol::ExchangeConsumerId>& request);
  [[nodiscard]] bool writes_slots() const noexcept {
    return (capabilities_ & protocol::kWritesSlots) != 0;
  }
  template <class Encode>
  void send(protocol::MessageId id, const Encode& encode);
  void refuse(protocol::Refusal code, const std::string& text);
  void end(const std::string& reason);
  void give_up(const std::string& reason);
  void leave_if_gone();

  ServerSession* session_;
  WorkerId id_;
  std::unique_ptr<ControlConnection> connection_;
  LocalControlConnection* local_;  ///< the connection, if it is one; else it is of a network
  std::string name_;
  std::string backend_;
  std::string key_;
  std::uint32_t capabilities_;
  protocol::Token token_{};                               ///< for data connections
  std::vector<std::shared_ptr<WorkerChannel>> channels_;  ///< those made, until it serves them
  std::size_t connected_ = 0;  ///< of a remote worker's channels, from the first on
  std::vector<bool> ready_;    ///< by channel
  core::RunTime began_;
  core::RunTime heard_;
  std::uint64_t keep_alives_ = 0;
  UserMessages user_messages_;
  bool attached_ = false;
  bool told_to_stop_ = false;
  bool given_up_ = false;            ///< by one side: its end is not a crash
  bool handling_ = false;            ///< a message: the observer may call this object again
  std::optional<std::string> gone_;  ///< why the attachment has ended
};

}  // namespace offload::comch
