#include "comch/session/server_session.hpp"

#include <utility>

#include "comch/session/server_attachment.hpp"
#include "core/log.hpp"

namespace offload::comch {

using protocol::MessageId;
using protocol::Refusal;

ServerSession::ServerSession(progress::Engine& engine, const Address& address, Offer offer,
                             Observer& observer)
    : engine_(&engine),
      offer_(std::move(offer)),
      observer_(&observer),
      pending_(engine, address, [this](auto connection, const ControlMessage& message) {
        on_first_message(std::move(connection), message);
      }) {}

ServerSession::~ServerSession() = default;

void ServerSession::on_first_message(std::unique_ptr<ControlConnection> connection,
                                     const ControlMessage& message) {
  auto* const network = dynamic_cast<NetworkControlConnection*>(connection.get());
  if (message.id == MessageId::attach_channel && network != nullptr) {
    return attach_channel(*network, message);
  }
  const auto refuse = [&](Refusal code, const std::string& text) {
    pending_.refuse(*connection, code, text);
  };
  if (message.id != MessageId::hello) return refuse(Refusal::bad_hello, "a worker greets first");
  const auto hello = protocol::Hello::decode(message.payload);
  if (!hello) return refuse(Refusal::bad_hello, "malformed greeting");
  if (hello->version != protocol::kControlVersion) {
    return refuse(Refusal::bad_version, "the worker speaks control version " +
                                            std::to_string(hello->version) + ", this server " +
                                            std::to_string(protocol::kControlVersion));
  }
  if (shutting_down_) return refuse(Refusal::shutting_down, "the server is shutting down");
  if (attachment_) return refuse(Refusal::busy, "a worker is attached: " + attachment_->name());
  if (former_may_access(*connection)) {
    return refuse(Refusal::busy, "the former worker, process " + std::to_string(former_->pid()) +
                                     ", has not ended yet");
  }
  if (hello->max_channels < offer_.channels.size()) {
    return refuse(Refusal::bad_hello, "the worker serves " + std::to_string(hello->max_channels) +
                                          " channels, this server has " +
                                          std::to_string(offer_.channels.size()));
  }
  if (hello->max_message_length < offer_.max_message_length) {
    return refuse(Refusal::bad_hello, "the worker takes messages of " +
                                          std::to_string(hello->max_message_length) +
                                          " bytes, this server's are up to " +
                                          std::to_string(offer_.max_message_length));
  }
  attachment_ = std::make_unique<Attachment>(*this, std::move(connection), *hello);
  core::log_info("worker {} attaches: {}", attachment_->name(), hello->backend);
  attachment_->start();
}

/// The connection is not for control messages, but for the data of a channel.
void ServerSession::attach_channel(NetworkControlConnection& connection,
                                   const ControlMessage& message) {
  const auto request = protocol::AttachChannel::decode(message.payload);
  if (!request) {
    return pending_.refuse(connection, Refusal::bad_hello, "malformed attachment of a channel");
  }
  if (!attachment_ || !attachment_->expects(*request)) {
    return pending_.refuse(connection, Refusal::bad_hello, "no such channel is to be attached");
  }
  attachment_->attach_channel(connection, *request);
}

bool ServerSession::former_may_access(const ControlConnection& next) const {
  const auto* const local = dynamic_cast<const LocalControlConnection*>(&next);
  return former_ && local != nullptr && local->peer().pid != former_->pid() &&
         !former_->has_ended();
}

void ServerSession::on_worker_gone(const std::string& reason) {
  core::log(shutting_down_ ? core::LogLevel::info : core::LogLevel::warning,
            "worker {} is gone: {}", attachment_->name(), reason);
  former_ = attachment_->take_process();
  const bool was_attached = attachment_->attached();
  attachment_.reset();
  if (was_attached) observer_->on_worker_lost();
}

void ServerSession::tick(core::TimePoint now) {
  next_tick_ = now + offer_.keep_alive;
  pending_.tick(now);
  if (attachment_) attachment_->tick(now);
}

void ServerSession::drop_worker(const std::string& reason) {
  if (attachment_) attachment_->drop(reason);
}

void ServerSession::start_shutdown() {
  shutting_down_ = true;
  if (attachment_) attachment_->start_shutdown();
}

}  // namespace offload::comch
