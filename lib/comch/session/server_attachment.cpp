#include "comch/session/server_attachment.hpp"

#include <algorithm>

#include "comch/session/key.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using core::Error;
using protocol::MessageId;
using protocol::Refusal;

/// Messages read from a worker at once, so that a flood of them does not hold the thread.
constexpr int kMessagesAtOnce = 64;
/// From its greeting a worker has this long until it serves: it allocates and loads its kernels.
constexpr core::Duration kAttachTime = std::chrono::seconds(60);

}  // namespace

ServerSession::Attachment::Attachment(ServerSession& session,
                                      std::unique_ptr<ControlConnection> connection,
                                      const protocol::Hello& hello)
    : session_(&session),
      connection_(std::move(connection)),
      local_(dynamic_cast<LocalControlConnection*>(connection_.get())),
      name_(connection_->peer_name()),
      wakeup_((hello.capabilities & protocol::kRingsDoorbell) != 0 ? channel::Wakeup::doorbell
                                                                   : channel::Wakeup::polling),
      ready_(session.offer_.channels.size()),
      heard_(core::Clock::now()) {
  if (local_ != nullptr) {
    process_.emplace(local_->peer().pid);
  } else {
    wakeup_ = channel::Wakeup::engine;
    randomize(token_);
  }
  session_->engine_->watch(connection_->fd(), EPOLLIN, *this);
}

ServerSession::Attachment::~Attachment() {
  session_->engine_->unwatch(connection_->fd(), *this);
}

void ServerSession::Attachment::start() {
  protocol::Welcome welcome;
  welcome.channel_count = static_cast<std::uint16_t>(session_->offer_.channels.size());
  welcome.keep_alive_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(session_->offer_.keep_alive).count());
  welcome.service = session_->offer_.service;
  try {
    connection_->send(MessageId::welcome, welcome.encode());
    // A remote worker is offered a channel once it has the one before: no more messages are under
    // way than a control connection has room for.
    const std::size_t count = local_ != nullptr ? session_->offer_.channels.size() : 1;
    for (std::size_t i = 0; i < count; ++i) offer_channel(i);
  } catch (const Error& error) {
    end(error.what());
  }
  leave_if_gone();
}

void ServerSession::Attachment::offer_channel(std::size_t index) {
  channel::ChannelMemory& channel = *session_->offer_.channels[index];
  auto descriptor = channel.descriptor();
  if (local_ != nullptr) {
    channel.repair_header();
    return local_->send_with_fds(MessageId::channel_descriptor, descriptor.encode(), channel.fds());
  }
  descriptor.access.assign(token_.begin(), token_.end());
  connection_->send(MessageId::channel_descriptor, descriptor.encode());
}

bool ServerSession::Attachment::expects(const protocol::AttachChannel& request) const {
  return equal_in_secret(request.token, token_) && request.channel == endpoints_.size() &&
         request.channel < session_->offer_.channels.size();
}

void ServerSession::Attachment::attach_channel(NetworkControlConnection& connection,
                                               const protocol::AttachChannel& request) {
  try {
    endpoints_.push_back(connection.grant_data_endpoint(
        request, session_->offer_.channels[request.channel]->depth()));
    heard_ = core::Clock::now();
    if (endpoints_.size() < session_->offer_.channels.size()) offer_channel(endpoints_.size());
  } catch (const Error& error) {
    end("channel " + std::to_string(request.channel) + " cannot be attached: " + error.what());
  }
  leave_if_gone();
}

void ServerSession::Attachment::on_events(std::uint32_t) {
  handling_ = true;
  try {
    for (int i = 0; !gone_ && i < kMessagesAtOnce; ++i) {
      const auto message = connection_->receive();
      if (!message) break;
      heard_ = core::Clock::now();
      handle(*message);
    }
  } catch (const Error& error) {
    if (error.code() == core::ErrorCode::bad_message) {
      refuse(Refusal::unknown_message, error.what());
    } else {
      end(error.what());
    }
  }
  handling_ = false;
  leave_if_gone();
}

void ServerSession::Attachment::handle(const ControlMessage& message) {
  switch (message.id) {
    case MessageId::exchange_consumer_id_request:
      return exchange_consumer_id(protocol::ExchangeConsumerId::decode(message.payload));
    case MessageId::keep_alive:
      if (!protocol::KeepAlive::decode(message.payload)) {
        refuse(Refusal::length_mismatch, "malformed keep-alive");
      }
      return;
    case MessageId::start_shutdown:
      if (!message.payload.empty()) {
        return refuse(Refusal::length_mismatch, "malformed start of shutdown");
      }
      core::log_info("the worker asks the server to end");
      return session_->observer_->on_shutdown_requested();
    case MessageId::shutdown_complete:
      if (!message.payload.empty()) {
        return refuse(Refusal::length_mismatch, "malformed end of shutdown");
      }
      return end("it has shut down");
    case MessageId::error: return end("it refused: " + protocol::parse_error(message.payload).text);
    default:
      return refuse(Refusal::misplaced_message,
                    "message " + std::to_string(static_cast<std::uint32_t>(message.id)) +
                        " does not belong on a control channel");
  }
}

void ServerSession::Attachment::exchange_consumer_id(
    const std::optional<protocol::ExchangeConsumerId>& request) {
  if (!request || request->channel >= ready_.size() || ready_[request->channel]) {
    return refuse(Refusal::bad_hello, "malformed or repeated consumer id");
  }
  if (local_ == nullptr && request->channel >= endpoints_.size()) {
    return refuse(Refusal::bad_hello, "a consumer without a data connection");
  }
  ready_[request->channel] = true;
  const protocol::ExchangeConsumerId response{request->channel, request->channel};
  connection_->send(MessageId::exchange_consumer_id_response, response.encode());
  if (!std::ranges::all_of(ready_, [](bool ready) { return ready; })) return;
  attached_ = true;
  session_->observer_->on_worker_attached(wakeup_, std::move(endpoints_));
}

void ServerSession::Attachment::tick(core::TimePoint now) {
  const core::Duration limit =
      attached_ ? protocol::kSilentIntervals * session_->offer_.keep_alive : kAttachTime;
  if (now - heard_ > limit) return drop("it has been silent for too long");
  if (!attached_) return;
  try {
    connection_->send(MessageId::keep_alive, protocol::KeepAlive{++keep_alives_}.encode());
  } catch (const Error& error) {
    drop(error.what());
  }
}

void ServerSession::Attachment::start_shutdown() {
  try {
    connection_->send(MessageId::start_shutdown, {});
  } catch (const Error& error) {
    drop(error.what());
  }
}

void ServerSession::Attachment::drop(const std::string& reason) {
  end(reason);
  leave_if_gone();
}

void ServerSession::Attachment::refuse(Refusal code, const std::string& text) {
  connection_->refuse(code, text);
  end("refused: " + text);
}

void ServerSession::Attachment::end(const std::string& reason) {
  if (!gone_) gone_ = reason;
}

/// Destroys this object if it is.
void ServerSession::Attachment::leave_if_gone() {
  if (gone_ && !handling_) session_->on_worker_gone(std::string(*gone_));
}

}  // namespace offload::comch
