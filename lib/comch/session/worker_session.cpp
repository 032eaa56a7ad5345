#include "comch/session/worker_session.hpp"

#include <algorithm>
#include <utility>

#include "comch/proxy/server_proxy.hpp"
#include "comch/proxy/slot_exchange.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

/// The interval until the server has sent its own.
constexpr core::Duration kFirstKeepAlive = std::chrono::seconds(1);

Error bad_message(const std::string& what) {
  return {ErrorCode::bad_message, what};
}

}  // namespace

WorkerSession::WorkerSession(progress::Engine& engine, const Address& address,
                             const protocol::Hello& hello, std::uint64_t most_memory,
                             Observer& observer)
    : engine_(&engine),
      observer_(&observer),
      address_(address),
      most_channels_(hello.max_channels),
      writes_slots_((hello.capabilities & protocol::kWritesSlots) != 0),
      memory_left_(most_memory),
      connection_(connect_to(address)),
      network_(dynamic_cast<NetworkControlConnection*>(connection_.get())),
      keep_alive_(kFirstKeepAlive),
      heard_(engine.run_time()) {
  connection_->send(MessageId::hello, hello.encode());
  engine_->watch(connection_->fd(), EPOLLIN, *this);
}

WorkerSession::~WorkerSession() {
  engine_->unwatch(connection_->fd(), *this);
}

void WorkerSession::on_events(std::uint32_t) {
  try {
    while (!lost_) {
      auto message = connection_->receive();
      if (!message) break;
      heard_ = engine_->run_time();
      handle(*std::move(message));
    }
  } catch (const Error& error) {
    const bool is_version = error.code() == ErrorCode::unsupported_version;
    const auto refusal = is_version ? protocol::Refusal::bad_version : protocol::Refusal::bad_hello;
    if (error.code() != ErrorCode::connection_reset && error.code() != ErrorCode::timed_out) {
      connection_->refuse(refusal, error.what());
    }
    if (is_version || error.code() == ErrorCode::full || error.code() == ErrorCode::not_supported) {
      return lose(error.what(), refusal);  // asking again would not help
    }
    lose(error.what());
  }
}

void WorkerSession::handle(ControlMessage message) {
  switch (message.id) {
    case MessageId::welcome: return take_welcome(protocol::Welcome::decode(message.payload));
    case MessageId::channel_descriptor: return take_descriptor(std::move(message));
    case MessageId::exchange_consumer_id_response:
      return take_consumer_id(protocol::ExchangeConsumerId::decode(message.payload));
    case MessageId::keep_alive:
      if (!protocol::KeepAlive::decode(message.payload)) throw bad_message("malformed keep-alive");
      return;
    case MessageId::assignment: {
      const auto assignment = protocol::Assignment::decode(message.payload);
      if (!assignment || !attached_) throw bad_message("malformed or misplaced assignment");
      return observer_->on_assignment(assignment->channels);
    }
    case MessageId::start_shutdown: {
      const auto shutdown = protocol::StartShutdown::decode(message.payload);
      if (!shutdown) throw bad_message("malformed shutdown request");
      return observer_->on_start_shutdown(shutdown->reason);
    }
    case MessageId::user_message: return take_user_message(message.payload);
    case MessageId::error: {
      const auto refusal = protocol::parse_error(message.payload);
      return lose(refusal.text, refusal.code);
    }
    default:
      throw bad_message("message " + std::to_string(static_cast<std::uint32_t>(message.id)) +
                        " does not belong on a control channel");
  }
}

void WorkerSession::take_welcome(const std::optional<protocol::Welcome>& welcome) {
  if (!welcome || welcome_) throw bad_message("malformed or second welcome");
  if (welcome->version != protocol::kControlVersion) {
    throw Error(ErrorCode::unsupported_version,
                "the server speaks control version " + std::to_string(welcome->version) +
                    ", this worker " + std::to_string(protocol::kControlVersion));
  }
  if (welcome->channel_count == 0 || welcome->keep_alive_ms == 0) {
    throw bad_message("welcome without channels or keep-alive");
  }
  if (welcome->channel_count > most_channels_) {
    throw bad_message("a welcome with " + std::to_string(welcome->channel_count) +
                      " channels; at most " + std::to_string(most_channels_) + " are allowed");
  }
  welcome_ = welcome;
  keep_alive_ = std::chrono::milliseconds(welcome->keep_alive_ms);
}

void WorkerSession::take_descriptor(ControlMessage message) {
  const auto descriptor = protocol::ChannelDescriptor::decode(message.payload);
  const bool complete = ids_requested_ != 0;
  if (!welcome_ || complete || !descriptor || descriptor->channel != channels_.size() ||
      descriptor->service >= welcome_->services.size()) {
    throw bad_message("malformed or misplaced channel descriptor");
  }
  reserve_memory(*descriptor);
  channels_.push_back(attach(*descriptor, std::move(message.fds)));
  channels_.back().service = welcome_->services[descriptor->service];
  if (channels_.size() < welcome_->channel_count) return;

  observer_->on_channels(std::exchange(channels_, {}));
  request_consumer_id();
}

/// Called before the channel's memory is allocated or mapped, which uses all of it on this machine.
void WorkerSession::reserve_memory(const protocol::ChannelDescriptor& descriptor) {
  const auto bytes = channel::layout_of(descriptor).bytes();
  if (bytes > memory_left_) {
    throw Error(ErrorCode::full, "channel " + std::to_string(descriptor.channel) + " needs " +
                                     std::to_string(bytes) + " bytes; " +
                                     std::to_string(memory_left_) +
                                     " remain of those that channels may use (--max-memory)");
  }
  memory_left_ -= bytes;
}

/// Requests one id after the other, so that a control channel has room for all messages in flight.
void WorkerSession::request_consumer_id() {
  const protocol::ExchangeConsumerId request{ids_requested_, ids_requested_};
  ++ids_requested_;
  connection_->send(MessageId::exchange_consumer_id_request, request.encode());
}

AttachedChannel WorkerSession::attach(const protocol::ChannelDescriptor& descriptor,
                                      std::vector<core::Fd> fds) const {
  if (network_ == nullptr) {
    channel::OwnedChannelFds passed;
    if (fds.size() != passed.size()) throw bad_message("malformed or misplaced channel descriptor");
    std::move(fds.begin(), fds.end(), passed.begin());
    return {std::make_shared<channel::ImportedChannel>(descriptor, std::move(passed)), {}, nullptr};
  }
  protocol::AttachChannel request{descriptor.channel};
  if (descriptor.access.size() != request.token.size()) throw bad_message("invalid channel token");
  std::copy(descriptor.access.begin(), descriptor.access.end(), request.token.begin());
  const auto another = network_->connect_another(address_);
  std::unique_ptr<ChannelLink> link;
  if (writes_slots_) {
    link = std::make_unique<SlotExchange>(
        descriptor, [&](const kernels::ChannelView& channel, progress::Engine& engine) {
          return another->request_slot_path(request, channel, engine);
        });
  } else {
    link = std::make_unique<ServerProxy>(descriptor,
                                         another->request_data_endpoint(request, descriptor.depth));
  }
  return {link->channel(), {}, std::move(link)};
}

void WorkerSession::take_consumer_id(const std::optional<protocol::ExchangeConsumerId>& response) {
  if (!response || response->channel != ids_received_ || ids_received_ == ids_requested_) {
    throw bad_message("malformed or misplaced consumer id");
  }
  if (++ids_received_ == welcome_->channel_count) {
    attached_ = true;
    return observer_->on_attached();
  }
  request_consumer_id();
}

void WorkerSession::tick(core::RunTime now) {
  next_tick_ = engine_->now() + keep_alive_;
  // Received messages count, even if this process was stopped for a while; the last one may say why
  // the server has ended.
  on_events(0);
  if (lost_) return;
  if (now - heard_ > protocol::kSilentIntervals * keep_alive_) {
    // Tells a server that was paused that this worker has not crashed.
    connection_->refuse(protocol::Refusal::worker_unavailable, "the server has been silent");
    return lose("it has been silent for too long");
  }
  try {
    if (welcome_) {
      connection_->send(MessageId::keep_alive, protocol::KeepAlive{++keep_alives_}.encode());
    }
  } catch (const Error& error) {
    lose(error.what());
  }
}

void WorkerSession::take_user_message(std::span<const std::byte> payload) {
  if (!attached_) throw bad_message("misplaced user message");
  const auto bytes = user_messages_.take(payload);
  if (bytes.empty()) return;
  connection_->send(MessageId::user_message, user_messages_.acknowledgement());
  observer_->on_user_message(bytes);
}

void WorkerSession::send_user_message(std::span<const std::byte> bytes) {
  if (!attached_ || lost_) throw Error(ErrorCode::not_connected, "not attached to the server");
  send(MessageId::user_message, user_messages_.next(bytes));
}

void WorkerSession::send(MessageId id, std::span<const std::byte> payload) {
  try {
    connection_->send(id, payload);
  } catch (const Error& error) {
    lose(error.what());
  }
}

void WorkerSession::complete() {
  try {
    connection_->send(MessageId::shutdown_complete, {});
  } catch (const Error& error) {
    core::log_warning("the server could not be told that this worker has stopped: {}",
                      error.what());
  }
}

void WorkerSession::lose(const std::string& reason, std::optional<protocol::Refusal> refused) {
  if (std::exchange(lost_, true)) return;
  engine_->unwatch(connection_->fd(), *this);
  observer_->on_lost(reason, refused);
}

}  // namespace offload::comch
