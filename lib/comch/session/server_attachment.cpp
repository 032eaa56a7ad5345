#include "comch/session/server_attachment.hpp"

#include <algorithm>

#include "comch/keys/key.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::comch {

using core::Error;
using protocol::MessageId;
using protocol::Refusal;

/// The number of messages read in one turn, so that a flood of them does not occupy the thread.
constexpr int kMessagesAtOnce = 64;
/// A worker must be attached this long after its greeting: it allocates and loads its kernels.
constexpr core::Duration kAttachTime = std::chrono::seconds(60);
/// A worker from which a message came within this number of keep-alive intervals ran until its end.
constexpr int kHeardIntervals = 2;

ServerSession::Attachment::Attachment(ServerSession& session, WorkerId id,
                                      ControlConnection& connection, const protocol::Hello& hello)
    : session_(&session),
      id_(id),
      local_(dynamic_cast<LocalControlConnection*>(&connection)),
      name_(std::to_string(id) + ", " + connection.peer_name()),
      backend_(hello.backend),
      key_(connection.proven_key()),
      capabilities_(hello.capabilities),
      ready_(session.offer_.numa_nodes.size()),
      began_(session.engine_->run_time()),
      heard_(began_) {
  if (local_ == nullptr) randomize(token_);
}

ServerSession::Attachment::~Attachment() {
  session_->engine_->deactivate(*this);
  if (connection_) session_->engine_->unwatch(connection_->fd(), *this);
}

void ServerSession::Attachment::start(std::unique_ptr<ControlConnection> connection) {
  connection_ = std::move(connection);
  try {
    protocol::Welcome welcome;
    welcome.channel_count = static_cast<std::uint16_t>(channel_count());
    welcome.keep_alive_ms = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(session_->offer_.keep_alive).count());
    welcome.services = session_->offer_.services;
    session_->engine_->watch(connection_->fd(), EPOLLIN, *this);
    connection_->send(MessageId::welcome, welcome.encode());
    session_->engine_->activate(*this);
  } catch (const std::exception& error) {
    end(core::what_of(error));
  }
  leave_if_gone();
}

/// Makes one channel, whose memory may take seconds: between two channels, keep-alives are sent,
/// and the end of the worker is detected.
bool ServerSession::Attachment::poll() {
  make_channel();
  if (!gone_) offer_channel(channels_.size() - 1);
  // A remote worker is offered a channel when it has the previous one, so that a control connection
  // has room for all messages in flight.
  if (local_ == nullptr || channels_.size() == channel_count()) {
    session_->engine_->deactivate(*this);
  }
  leave_if_gone();
  return true;
}

void ServerSession::Attachment::make_channel() {
  auto wakeup = (capabilities_ & protocol::kRingsDoorbell) != 0 ? channel::Wakeup::doorbell
                                                                : channel::Wakeup::polling;
  if (local_ == nullptr) wakeup = channel::Wakeup::engine;
  const Offer& offer = session_->offer_;
  const auto index = static_cast<std::uint32_t>(channels_.size());
  try {
    channels_.push_back(std::shared_ptr<WorkerChannel>(
        new WorkerChannel{id_,
                          wakeup,
                          {index, offer.depth, offer.max_message_length, offer.numa_nodes[index], 0,
                           offer.max_response_length}}));
  } catch (const std::exception& error) {
    refuse(Refusal::busy, std::string("cannot create its channels: ") + core::what_of(error));
  }
}

void ServerSession::Attachment::offer_channel(std::size_t index) {
  const channel::ChannelMemory& memory = channels_[index]->memory;
  try {
    auto descriptor = memory.descriptor();
    descriptor.service =
        static_cast<std::uint8_t>(index * session_->offer_.services.size() / channel_count());
    if (local_ != nullptr) {
      return local_->send_with_fds(MessageId::channel_descriptor, descriptor.encode(),
                                   memory.fds());
    }
    descriptor.access.assign(token_.begin(), token_.end());
    descriptor.response_access.clear();
    connection_->send(MessageId::channel_descriptor, descriptor.encode());
  } catch (const std::exception& error) {
    end(core::what_of(error));
  }
}

bool ServerSession::Attachment::expects(const protocol::AttachChannel& request) const {
  return local_ == nullptr && equal_in_secret(request.token, token_) &&
         request.channel == connected_ && request.channel < channels_.size();
}

void ServerSession::Attachment::attach_channel(NetworkControlConnection& connection,
                                               const protocol::AttachChannel& request) {
  try {
    WorkerChannel& channel = *channels_[request.channel];
    channel.endpoint = writes_slots()
                           ? connection.grant_slot_endpoint(request, channel.memory.endpoint().view)
                           : connection.grant_data_endpoint(request, channel.memory.depth());
    heard_ = session_->engine_->run_time();
    if (++connected_ < channel_count() && !told_to_stop_) session_->engine_->activate(*this);
  } catch (const std::exception& error) {
    // The worker waits for the answer to its request, and may try again.
    connection.refuse(Refusal::busy, core::what_of(error));
    end("channel " + std::to_string(request.channel) +
        " could not be attached: " + core::what_of(error));
  }
  leave_if_gone();
}

void ServerSession::Attachment::on_events(std::uint32_t) {
  read_messages();
  leave_if_gone();
}

void ServerSession::Attachment::read_messages() {
  handling_ = true;
  try {
    for (int i = 0; !gone_ && i < kMessagesAtOnce; ++i) {
      const auto message = connection_->receive();
      if (!message) break;
      heard_ = session_->engine_->run_time();
      handle(*message);
    }
  } catch (const Error& error) {
    if (error.code() == core::ErrorCode::bad_message) {
      refuse(Refusal::unknown_message, error.what());
    } else {
      end(error.what());
    }
  } catch (const std::exception& error) {  // out of memory: the other attachments continue
    give_up(core::what_of(error));
  }
  handling_ = false;
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
        return refuse(Refusal::length_mismatch, "malformed shutdown request");
      }
      core::log_info("worker {} asks the server to shut down", name_);
      return session_->observer_->on_shutdown_requested();
    case MessageId::detach:
      if (!message.payload.empty()) return refuse(Refusal::length_mismatch, "malformed detach");
      given_up_ = true;  // it may end after its time limit, whatever it still has
      // Before it is attached, there is nothing to wait for.
      if (!attached_) return start_shutdown(protocol::ShutdownReason::released);
      core::log_info("worker {} asks to be detached", name_);
      return session_->observer_->on_worker_leaving(id_);
    case MessageId::shutdown_complete:
      if (!message.payload.empty()) {
        return refuse(Refusal::length_mismatch, "malformed shutdown completion");
      }
      return give_up("it has shut down");
    case MessageId::user_message: return take_user_message(message.payload);
    case MessageId::error:
      return give_up("it refused: " + protocol::parse_error(message.payload).text);
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
  if (request->channel >= (local_ != nullptr ? channels_.size() : connected_)) {
    return refuse(Refusal::bad_hello, "consumer id of a channel that it does not have yet");
  }
  ready_[request->channel] = true;
  const protocol::ExchangeConsumerId response{request->channel, request->channel};
  connection_->send(MessageId::exchange_consumer_id_response, response.encode());
  if (!std::ranges::all_of(ready_, [](bool ready) { return ready; })) return;
  attached_ = true;
  core::log_info("worker {} is ready{}", name_,
                 (capabilities_ & protocol::kStandsBy) != 0 ? ", as a stand-by" : "");
  session_->observer_->on_worker_attached({id_, (capabilities_ & protocol::kStandsBy) != 0,
                                           (capabilities_ & protocol::kReplaces) != 0,
                                           std::move(channels_), backend_, key_});
}

void ServerSession::Attachment::take_user_message(std::span<const std::byte> payload) {
  if (!attached_) return refuse(Refusal::misplaced_message, "user message before it is attached");
  const auto bytes = user_messages_.take(payload);
  if (bytes.empty()) return;
  connection_->send(MessageId::user_message, user_messages_.acknowledgement());
  session_->observer_->on_user_message(id_, bytes);
}

/// Sends a message; `encode`() makes its payload.
template <class Encode>
void ServerSession::Attachment::send(MessageId id, const Encode& encode) {
  try {
    connection_->send(id, encode());
  } catch (const std::exception& error) {
    end(core::what_of(error));
  }
}

void ServerSession::Attachment::tick(core::RunTime now) {
  // Received messages count, even if this process was stopped for a while.
  read_messages();
  if (gone_) return leave_if_gone();
  // Keep-alives do not count before it is attached: they could continue without end.
  if (!attached_) {
    if (now - began_ > kAttachTime) drop("it did not attach in time");
    return;
  }
  if (now - heard_ > protocol::kSilentIntervals * session_->offer_.keep_alive) {
    return drop("it has been silent for too long");
  }
  send(MessageId::keep_alive, [this] { return protocol::KeepAlive{++keep_alives_}.encode(); });
  leave_if_gone();
}

void ServerSession::Attachment::assign(std::uint32_t channels) {
  send(MessageId::assignment, [=] { return protocol::Assignment{channels}.encode(); });
  leave_if_gone();
}

void ServerSession::Attachment::send_user_message(std::span<const std::byte> bytes) {
  const auto message = user_messages_.next(bytes);
  send(MessageId::user_message, [&] { return std::span(message); });
  leave_if_gone();
}

void ServerSession::Attachment::start_shutdown(protocol::ShutdownReason reason) {
  told_to_stop_ = given_up_ = true;
  session_->engine_->deactivate(*this);  // no channel follows
  send(MessageId::start_shutdown, [=] { return protocol::StartShutdown{reason}.encode(); });
  leave_if_gone();
}

void ServerSession::Attachment::refuse_and_drop(Refusal code, const std::string& text) {
  refuse(code, text);
  leave_if_gone();
}

/// If the worker has ended, reports that as the reason: its data connections end with it.
void ServerSession::Attachment::drop(const std::string& reason) {
  if (!handling_) read_messages();
  give_up(reason);
  leave_if_gone();
}

void ServerSession::Attachment::refuse(Refusal code, const std::string& text) {
  connection_->refuse(code, text);
  give_up("refused: " + text);
}

WorkerLoss ServerSession::Attachment::loss() const noexcept {
  const auto silence = session_->engine_->run_time() - heard_;
  return !given_up_ && silence <= kHeardIntervals * session_->offer_.keep_alive
             ? WorkerLoss::ended
             : WorkerLoss::given_up;
}

void ServerSession::Attachment::end(const std::string& reason) {
  if (!gone_) gone_ = reason;
}

/// For an end that the worker announced, or that this side decided.
void ServerSession::Attachment::give_up(const std::string& reason) {
  if (!gone_) given_up_ = true;
  end(reason);
}

/// Destroys this object if the worker is gone.
void ServerSession::Attachment::leave_if_gone() {
  if (gone_ && !handling_) session_->on_worker_gone(id_, std::string(*gone_));
}

}  // namespace offload::comch
