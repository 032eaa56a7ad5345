#include "comch/session/server_session.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "comch/session/server_attachment.hpp"
#include "core/error.hpp"
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

void ServerSession::require_channel_memory() const {
  try {
    channel::try_memory(offer_.numa_nodes.size(), offer_.depth, offer_.max_message_length,
                        offer_.max_response_length);
  } catch (const core::Error& error) {
    throw core::Error(error.code(), fmt::format("cannot create the {} channels of a worker: {}",
                                                offer_.numa_nodes.size(), error.what()));
  }
}

void ServerSession::on_first_message(std::unique_ptr<ControlConnection> connection,
                                     const ControlMessage& message) {
  auto* const network = dynamic_cast<NetworkControlConnection*>(connection.get());
  if (message.id == MessageId::attach_channel && network != nullptr) {
    return attach_channel(*network, message);
  }
  const auto refuse = [&](Refusal code, const std::string& text) {
    pending_.refuse(*connection, code, text);
  };
  if (message.id != MessageId::hello)
    return refuse(Refusal::bad_hello, "expected a greeting first");
  const auto hello = protocol::Hello::decode(message.payload);
  if (!hello) return refuse(Refusal::bad_hello, "malformed greeting");
  if (hello->version != protocol::kControlVersion) {
    return refuse(Refusal::bad_version, "the worker speaks control version " +
                                            std::to_string(hello->version) + ", this server " +
                                            std::to_string(protocol::kControlVersion));
  }
  if (shutting_down_) return refuse(Refusal::shutting_down, "the server is shutting down");
  if (attachments_.size() >= offer_.most_workers) {
    return refuse(Refusal::busy, std::to_string(attachments_.size()) + " workers are attached");
  }
  if (hello->max_channels < offer_.numa_nodes.size()) {
    return refuse(Refusal::bad_hello, "the worker serves " + std::to_string(hello->max_channels) +
                                          " channels, this server has " +
                                          std::to_string(offer_.numa_nodes.size()));
  }
  if (hello->max_message_length < offer_.max_message_length) {
    return refuse(Refusal::bad_hello, "the worker takes messages of " +
                                          std::to_string(hello->max_message_length) +
                                          " bytes, this server's are up to " +
                                          std::to_string(offer_.max_message_length));
  }
  for (const std::string& service : offer_.services) {
    if (std::ranges::find(hello->services, service) != hello->services.end()) continue;
    return refuse(
        Refusal::bad_hello,
        fmt::format("the worker has no service '{}'; it has: {}; correct --service or --listen of "
                    "the server, or give the worker a --service-module that has it",
                    service, fmt::join(hello->services, ", ")));
  }
  if (network != nullptr && (hello->capabilities & protocol::kWritesSlots) != 0) {
    try {
      network->require_slots();
    } catch (const core::Error& error) {
      const bool may_change = error.code() != core::ErrorCode::not_supported;
      return refuse(may_change ? Refusal::busy : Refusal::bad_hello,
                    std::string("this server cannot write into a worker's slots: ") + error.what());
    }
  }
  const WorkerId id = ++last_id_;
  auto attachment = std::make_unique<Attachment>(*this, id, *connection, *hello);
  core::log_info("worker {} attaches: {}{}", attachment->name(), hello->backend,
                 attachment->key().empty() ? "" : ", with the key " + attachment->key());
  attachments_.emplace(id, std::move(attachment)).first->second->start(std::move(connection));
}

/// Uses the connection for the data of a channel, not for control messages.
void ServerSession::attach_channel(NetworkControlConnection& connection,
                                   const ControlMessage& message) {
  const auto request = protocol::AttachChannel::decode(message.payload);
  if (!request) {
    return pending_.refuse(connection, Refusal::bad_hello, "malformed attachment of a channel");
  }
  const auto expecting = std::ranges::find_if(
      attachments_, [&](const auto& entry) { return entry.second->expects(*request); });
  if (expecting == attachments_.end()) {
    return pending_.refuse(connection, Refusal::bad_hello, "no such channel waits to be attached");
  }
  expecting->second->attach_channel(connection, *request);
}

ServerSession::Attachment* ServerSession::find(WorkerId worker) const {
  const auto found = attachments_.find(worker);
  return found != attachments_.end() ? found->second.get() : nullptr;
}

template <class Action>
void ServerSession::for_each(Action action) {
  for (auto at = attachments_.begin(); at != attachments_.end();) {
    const WorkerId id = at->first;
    action(*at->second);  // the call may end other attachments as well
    at = attachments_.upper_bound(id);
  }
}

void ServerSession::on_worker_gone(WorkerId worker, const std::string& reason) {
  // Erased before the observer is called, which may call functions for other workers.
  const auto gone = attachments_.extract(worker);
  core::log(gone.mapped()->told_to_stop() ? core::LogLevel::info : core::LogLevel::warning,
            "worker {} is gone: {}", gone.mapped()->name(), reason);
  if (gone.mapped()->attached()) observer_->on_worker_lost(worker, gone.mapped()->loss());
}

void ServerSession::tick(core::RunTime now) {
  next_tick_ = engine_->now() + offer_.keep_alive;
  pending_.tick(now);
  for_each([&](Attachment& attachment) { attachment.tick(now); });
}

void ServerSession::assign(WorkerId worker, std::uint32_t channels) {
  if (Attachment* const attachment = find(worker)) attachment->assign(channels);
}

void ServerSession::release(WorkerId worker) {
  if (Attachment* const attachment = find(worker)) {
    attachment->start_shutdown(protocol::ShutdownReason::released);
  }
}

void ServerSession::drop(WorkerId worker, const std::string& reason) {
  if (Attachment* const attachment = find(worker)) attachment->drop(reason);
}

void ServerSession::refuse(WorkerId worker, Refusal code, const std::string& text) {
  if (Attachment* const attachment = find(worker)) attachment->refuse_and_drop(code, text);
}

void ServerSession::send_user_message(WorkerId worker, std::span<const std::byte> bytes) {
  Attachment* const attachment = find(worker);
  if (attachment == nullptr || !attachment->attached()) {
    throw core::Error(core::ErrorCode::not_connected,
                      "worker " + name_of(worker) + " is not attached");
  }
  attachment->send_user_message(bytes);
}

std::string ServerSession::name_of(WorkerId worker) const {
  const Attachment* const attachment = find(worker);
  return attachment != nullptr ? attachment->name() : std::to_string(worker);
}

void ServerSession::start_shutdown(protocol::ShutdownReason reason) {
  shutting_down_ = true;
  for_each([&](Attachment& attachment) { attachment.start_shutdown(reason); });
}

}  // namespace offload::comch
