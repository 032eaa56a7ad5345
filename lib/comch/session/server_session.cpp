#include "comch/session/server_session.hpp"

#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "comch/session/handshake.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using channel::Wakeup;
using core::Error;
using core::TimePoint;
using protocol::MessageId;
using protocol::Refusal;

/// What is read from a worker at once, so that a flood of its messages cannot hold the thread.
constexpr int kMessagesAtOnce = 64;
/// Who connects and does not greet is sent away after that.
constexpr core::Duration kGreetTime = std::chrono::seconds(5);
/// Strangers may come over a network: so many are listened to at once.
constexpr std::size_t kMostNewcomers = 64;
/// From its greeting a worker has this long until it serves: it allocates and loads its kernels.
constexpr core::Duration kAttachTime = std::chrono::seconds(60);

core::Fd open_pidfd(int pid) {
  // Not in glibc before 2.36. Fails for a process of another PID namespace, which shows as 0.
  return core::Fd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
}

bool has_ended(const core::Fd& process) {
  pollfd poll{process.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

}  // namespace

ServerSession::ServerSession(progress::Engine& engine, const Address& address, Offer offer,
                             ServerSessionObserver& observer)
    : engine_(&engine), listener_(address), offer_(std::move(offer)), observer_(&observer) {
  // Edge-triggered: where a connection cannot be taken, tick() tries again.
  engine_->watch(listener_.fd(), EPOLLIN | EPOLLET, *this);
}

ServerSession::~ServerSession() {
  for (const PendingConnection& pending : pending_) engine_->unwatch(pending.socket.fd(), *this);
  if (session_) engine_->unwatch(session_->socket.fd(), *this);
  engine_->unwatch(listener_.fd(), *this);
}

void ServerSession::on_events(std::uint32_t) {
  accept();
  greet_pending();
  serve_session();
}

void ServerSession::accept() {
  // Some: whoever floods the listener does not hold the thread. tick() takes the rest.
  for (std::size_t i = 0; i < kMostNewcomers; ++i) {
    auto socket = listener_.accept();
    if (!socket) return;
    if (pending_.size() == kMostNewcomers && !send_away_a_stranger()) continue;  // closes it
    try {
      std::optional<protocol::Nonce> challenge;
      if (!socket->local()) challenge = send_challenge(*socket);
      engine_->watch(socket->fd(), EPOLLIN, *this);
      pending_.push_back({*std::move(socket), core::Clock::now(), challenge});
    } catch (const Error& error) {
      log_pending(core::LogLevel::warning, std::string("could not be taken: ") + error.what());
    }
  }
}

/// To make room for one who may have the key: the one who has been silent for the longest. False:
/// nobody is a stranger.
bool ServerSession::send_away_a_stranger() {
  const auto stranger =
      std::find_if(pending_.begin(), pending_.end(),
                   [](const PendingConnection& pending) { return pending.challenge.has_value(); });
  if (stranger == pending_.end()) return false;
  log_pending(core::LogLevel::warning, "makes room for another: it has proven nothing yet");
  engine_->unwatch(stranger->socket.fd(), *this);
  pending_.erase(stranger);
  return true;
}

void ServerSession::greet_pending() {
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    pending = greet(*pending) ? pending_.erase(pending) : pending + 1;
  }
}

/// Whether it greeted, or went: then it is no pending any more.
bool ServerSession::greet(PendingConnection& pending) {
  std::optional<ControlMessage> message;
  try {
    message = pending.socket.receive();
    if (!message) return false;
    if (pending.challenge) {
      if (take_proof(pending.socket, listener_.address().key, *pending.challenge, *message)) {
        pending.challenge.reset();
        return greet(pending);
      }
      refuse(pending, Refusal::bad_key, "the peer does not have this server's key");
    } else if (message->id == MessageId::attach_channel && !pending.socket.local()) {
      attach_channel(pending, *message);
    } else {
      admit(pending, *message);
    }
  } catch (const Error& error) {
    engine_->unwatch(pending.socket.fd(), *this);
    if (error.code() == core::ErrorCode::bad_message) {
      pending.socket.refuse(Refusal::bad_hello, error.what());
      log_pending(core::LogLevel::warning, std::string("is refused: ") + error.what());
    } else {
      core::log_debug("a control connection came to nothing: {}", error.what());
    }
  }
  return true;
}

/// The refusal is sent once the greeting was read: a socket that is closed with something unread
/// takes what it sent last from its peer.
void ServerSession::admit(PendingConnection& pending, const ControlMessage& message) {
  if (message.id != MessageId::hello) {
    return refuse(pending, Refusal::bad_hello, "a worker greets first");
  }
  const auto hello = protocol::Hello::decode(message.payload);
  if (!hello) return refuse(pending, Refusal::bad_hello, "malformed greeting");
  if (hello->version != protocol::kControlVersion) {
    return refuse(pending, Refusal::bad_version,
                  "the worker speaks control version " + std::to_string(hello->version) +
                      ", this server " + std::to_string(protocol::kControlVersion));
  }
  if (shutting_down_) {
    return refuse(pending, Refusal::shutting_down, "the server is shutting down");
  }
  if (session_) {
    return refuse(pending, Refusal::busy, "a worker is attached: " + session_->name);
  }
  if (!former_is_gone(pending.socket)) {
    return refuse(
        pending, Refusal::busy,
        "the former worker, process " + std::to_string(former_.pid) + ", has not ended yet");
  }
  if (hello->max_channels < offer_.channels.size()) {
    return refuse(pending, Refusal::bad_hello,
                  "the worker serves " + std::to_string(hello->max_channels) +
                      " channels, this server has " + std::to_string(offer_.channels.size()));
  }
  if (hello->max_message_length < offer_.max_message_length) {
    return refuse(pending, Refusal::bad_hello,
                  "the worker takes messages of " + std::to_string(hello->max_message_length) +
                      " bytes, this server's are up to " +
                      std::to_string(offer_.max_message_length));
  }
  const bool rings = (hello->capabilities & protocol::kRingsDoorbell) != 0;
  Session session{std::move(pending.socket)};
  session.name = session.socket.peer_name();
  session.wakeup = rings ? Wakeup::doorbell : Wakeup::polling;
  if (session.socket.local()) {
    session.peer = session.socket.peer();
    session.process = open_pidfd(session.peer.pid);
  } else {
    session.wakeup = Wakeup::engine;
    randomize(session.token);
  }
  session.ready.resize(offer_.channels.size());
  session.heard = core::Clock::now();
  session_.emplace(std::move(session));
  core::log_info("worker {} attaches: {}", session_->name, hello->backend);
  offer_channels();
}

/// It is no control connection, but one that is to carry a channel's messages.
void ServerSession::attach_channel(PendingConnection& pending, const ControlMessage& message) {
  const auto attach = protocol::AttachChannel::decode(message.payload);
  if (!attach) return refuse(pending, Refusal::bad_hello, "malformed attachment of a channel");
  if (!session_ || !equal_in_secret(attach->token, session_->token) ||
      attach->channel != session_->lines.size() || attach->channel >= offer_.channels.size()) {
    return refuse(pending, Refusal::bad_hello, "no such channel is to be attached");
  }
  const int fd = pending.socket.fd();
  try {
    auto line = pending.socket.grant_line(*attach, offer_.channels[attach->channel]->depth());
    engine_->unwatch(fd, *this);
    session_->lines.push_back(std::move(line));
    session_->heard = core::Clock::now();
    if (session_->lines.size() < offer_.channels.size()) offer_channel(session_->lines.size());
  } catch (const Error& error) {
    engine_->unwatch(fd, *this);
    drop("channel " + std::to_string(attach->channel) + " cannot be attached: " + error.what());
  }
}

void ServerSession::refuse(PendingConnection& pending, Refusal code, const std::string& text) {
  log_pending(code == Refusal::busy ? core::LogLevel::info : core::LogLevel::warning,
              "is refused: " + text);
  engine_->unwatch(pending.socket.fd(), *this);
  pending.socket.refuse(code, text);
}

bool ServerSession::former_is_gone(const ControlSocket& pending) {
  if (!former_process_.valid() || pending.peer().pid == former_.pid) return true;
  return has_ended(former_process_);
}

void ServerSession::offer_channels() {
  protocol::Welcome welcome;
  welcome.channel_count = static_cast<std::uint16_t>(offer_.channels.size());
  welcome.keep_alive_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(offer_.keep_alive).count());
  welcome.service = offer_.service;
  try {
    session_->socket.send(MessageId::welcome, welcome.encode());
    // A remote worker is offered one after the other, when it has the one before: no more is under
    // way than a control channel has room for.
    const std::size_t count = session_->wakeup == Wakeup::engine ? 1 : offer_.channels.size();
    for (std::size_t i = 0; i < count; ++i) offer_channel(i);
  } catch (const Error& error) {
    drop(error.what());
  }
}

void ServerSession::offer_channel(std::size_t index) {
  channel::ChannelMemory& channel = *offer_.channels[index];
  if (session_->wakeup == Wakeup::engine) {
    auto descriptor = channel.descriptor();
    descriptor.access.assign(session_->token.begin(), session_->token.end());
    return session_->socket.send(MessageId::channel_descriptor, descriptor.encode());
  }
  channel.repair_header();
  session_->socket.send(MessageId::channel_descriptor, channel.descriptor().encode(),
                        channel.fds());
}

void ServerSession::serve_session() {
  try {
    for (int i = 0; session_ && i < kMessagesAtOnce; ++i) {  // a handler may end it
      const auto message = session_->socket.receive();
      if (!message) break;
      session_->heard = core::Clock::now();
      handle(*message);
    }
  } catch (const Error& error) {
    if (error.code() == core::ErrorCode::bad_message) {
      refuse(Refusal::unknown_message, error.what());
    } else {
      drop(error.what());
    }
  }
}

void ServerSession::handle(const ControlMessage& message) {
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
      return observer_->on_shutdown_requested();
    case MessageId::shutdown_complete:
      if (!message.payload.empty()) {
        return refuse(Refusal::length_mismatch, "malformed end of shutdown");
      }
      return drop("it has shut down");
    case MessageId::error:
      return drop("it refused: " + protocol::parse_error(message.payload).text);
    default:
      return refuse(Refusal::misplaced_message,
                    "message " + std::to_string(static_cast<std::uint32_t>(message.id)) +
                        " does not belong on a control channel");
  }
}

void ServerSession::exchange_consumer_id(
    const std::optional<protocol::ExchangeConsumerId>& request) {
  if (!request || request->channel >= session_->ready.size() || session_->ready[request->channel]) {
    return refuse(Refusal::bad_hello, "malformed or repeated consumer id");
  }
  if (session_->wakeup == Wakeup::engine && request->channel >= session_->lines.size()) {
    return refuse(Refusal::bad_hello, "a consumer without a line");
  }
  session_->ready[request->channel] = true;
  const protocol::ExchangeConsumerId response{request->channel, request->channel};
  session_->socket.send(MessageId::exchange_consumer_id_response, response.encode());
  if (!std::all_of(session_->ready.begin(), session_->ready.end(),
                   [](bool ready) { return ready; })) {
    return;
  }
  session_->attached = true;
  observer_->on_worker_attached(session_->wakeup, std::move(session_->lines));
}

void ServerSession::tick(TimePoint now) {
  next_tick_ = now + offer_.keep_alive;
  accept();
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    if (now - pending->since < kGreetTime) {
      ++pending;
      continue;
    }
    engine_->unwatch(pending->socket.fd(), *this);
    pending = pending_.erase(pending);
  }
  if (!session_) return;
  const core::Duration limit =
      session_->attached ? protocol::kSilentIntervals * offer_.keep_alive : kAttachTime;
  if (now - session_->heard > limit) return drop("it has been silent for too long");
  try {
    if (session_->attached) {
      session_->socket.send(MessageId::keep_alive, protocol::KeepAlive{++keep_alives_}.encode());
    }
  } catch (const Error& error) {
    drop(error.what());
  }
}

void ServerSession::start_shutdown() {
  shutting_down_ = true;
  if (!session_) return;
  try {
    session_->socket.send(MessageId::start_shutdown, {});
  } catch (const Error& error) {
    drop(error.what());
  }
}

void ServerSession::refuse(Refusal code, const std::string& text) {
  session_->socket.refuse(code, text);
  drop("refused: " + text);
}

/// Anybody may connect where the network reaches: not more than a line a second is said of it.
void ServerSession::log_pending(core::LogLevel level, const std::string& what) {
  if (!pending_log_.allow(core::Clock::now())) return;
  core::log(level, "a control connection {} ({} more were not logged)", what,
            pending_log_.suppressed());
}

void ServerSession::drop(const std::string& reason) {
  if (!session_) return;
  core::log(shutting_down_ ? core::LogLevel::info : core::LogLevel::warning,
            "worker {} is gone: {}", session_->name, reason);
  engine_->unwatch(session_->socket.fd(), *this);
  former_ = session_->peer;
  former_process_ = std::move(session_->process);
  const bool was_attached = session_->attached;
  session_.reset();
  if (was_attached) observer_->on_worker_lost();
}

}  // namespace offload::comch
