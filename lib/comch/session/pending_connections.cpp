#include "comch/session/pending_connections.hpp"

#include <algorithm>
#include <utility>

#include "comch/session/handshake.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using protocol::Refusal;

/// A connection has this long for its first message.
constexpr core::Duration kGreetTime = std::chrono::seconds(5);
/// Anybody may connect over a network: so many are listened to at once.
constexpr std::size_t kMostPending = 64;

}  // namespace

PendingConnections::PendingConnections(progress::Engine& engine, const Address& address,
                                       OnFirstMessage on_first_message)
    : engine_(&engine),
      on_first_message_(std::move(on_first_message)),
      listener_(transport_of(address.scheme).listen(address)) {
  // Edge-triggered: where a connection cannot be accepted, tick() tries again.
  engine_->watch(listener_->fd(), EPOLLIN | EPOLLET, *this);
}

PendingConnections::~PendingConnections() {
  for (const PendingConnection& pending : pending_)
    engine_->unwatch(pending.connection->fd(), *this);
  engine_->unwatch(listener_->fd(), *this);
}

void PendingConnections::on_events(std::uint32_t) {
  accept();
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    pending = receive(*pending) ? pending_.erase(pending) : pending + 1;
  }
}

void PendingConnections::accept() {
  // Not without end, so that a flood of connections does not hold the thread. tick() takes the
  // rest.
  for (std::size_t i = 0; i < kMostPending; ++i) {
    auto connection = listener_->accept();
    if (!connection) return;
    if (pending_.size() == kMostPending && !drop_unproven()) continue;  // closes it
    try {
      std::optional<protocol::Nonce> challenge;
      if (!address().local()) challenge = send_challenge(*connection);
      engine_->watch(connection->fd(), EPOLLIN, *this);
      pending_.push_back({std::move(connection), core::Clock::now(), challenge});
    } catch (const Error& error) {
      log(core::LogLevel::warning, std::string("could not be taken: ") + error.what());
    }
  }
}

/// To make room for a peer that may have the key: drops the one that has been silent for the
/// longest without proving that it has. False if there is none.
bool PendingConnections::drop_unproven() {
  const auto unproven = std::ranges::find_if(
      pending_, [](const PendingConnection& pending) { return pending.challenge.has_value(); });
  if (unproven == pending_.end()) return false;
  log(core::LogLevel::warning, "makes room for another: it has proven nothing yet");
  engine_->unwatch(unproven->connection->fd(), *this);
  pending_.erase(unproven);
  return true;
}

/// Whether it is pending no more: its first message came, or it ended.
bool PendingConnections::receive(PendingConnection& pending) {
  const int fd = pending.connection->fd();
  try {
    auto message = pending.connection->receive();
    if (!message) return false;
    if (pending.challenge) {
      if (take_proof(*pending.connection, address().key, *pending.challenge, *message)) {
        pending.challenge.reset();
        return receive(pending);
      }
      engine_->unwatch(fd, *this);
      refuse(*pending.connection, Refusal::bad_key, "the peer does not have this server's key");
      return true;
    }
    engine_->unwatch(fd, *this);
    on_first_message_(std::move(pending.connection), *message);
  } catch (const Error& error) {
    const bool handed_on = pending.connection == nullptr;
    if (!handed_on) engine_->unwatch(fd, *this);
    if (!handed_on && error.code() == core::ErrorCode::bad_message) {
      refuse(*pending.connection, Refusal::bad_hello, error.what());
    } else {
      core::log_debug("a control connection came to nothing: {}", error.what());
    }
  }
  return true;
}

void PendingConnections::refuse(ControlConnection& connection, Refusal code,
                                const std::string& text) {
  log(code == Refusal::busy ? core::LogLevel::info : core::LogLevel::warning,
      "is refused: " + text);
  connection.refuse(code, text);
}

void PendingConnections::tick(core::TimePoint now) {
  accept();
  std::erase_if(pending_, [&](const PendingConnection& pending) {
    if (now - pending.since < kGreetTime) return false;
    engine_->unwatch(pending.connection->fd(), *this);
    return true;
  });
}

/// At most once a second: anybody may connect over a network.
void PendingConnections::log(core::LogLevel level, const std::string& what) {
  if (!log_limit_.allow(core::Clock::now())) return;
  core::log(level, "a control connection {} ({} more were not logged)", what,
            log_limit_.suppressed());
}

}  // namespace offload::comch
