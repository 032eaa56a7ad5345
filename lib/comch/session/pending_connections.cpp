#include "comch/session/pending_connections.hpp"

#include <algorithm>
#include <utility>

#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "core/process/out_of_memory.hpp"
#include "net/source/make_room.hpp"

namespace offload::comch {

using core::Error;
using core::ErrorCode;
using core::LogLevel;
using protocol::Refusal;

/// A connection must send its first message within this time.
constexpr core::Duration kGreetTime = std::chrono::seconds(5);
/// The number of connections accepted in one turn of the engine: few, so that existing ones
/// progress in between.
constexpr std::size_t kAcceptedAtOnce = 16;

struct PendingConnections::Pending final : progress::EventHandler {
  Pending(PendingConnections& in, std::unique_ptr<ControlConnection> of)
      : owner(&in),
        connection(std::move(of)),
        since(in.engine_->run_time()),
        source(net::source_of(connection->source().storage)) {}

  void on_events(std::uint32_t) override { owner->receive(*this); }

  PendingConnections* owner;
  std::unique_ptr<ControlConnection> connection;
  core::RunTime since;
  net::Source source;
  Stage stage = Stage::silent;
};

PendingConnections::PendingConnections(progress::Engine& engine, const Address& address,
                                       OnFirstMessage on_first_message)
    : engine_(&engine),
      on_first_message_(std::move(on_first_message)),
      listener_(transport_of(address.scheme).listen(address)) {
  listener_->set_admission([this](const net::SocketAddress& peer) { return admit(peer); });
  // Edge-triggered: if a connection cannot be accepted, tick() tries again.
  engine_->watch(listener_->fd(), EPOLLIN | EPOLLET, *this);
}

PendingConnections::~PendingConnections() {
  while (!pending_.empty()) drop(*pending_.back());
  engine_->unwatch(listener_->fd(), *this);
}

bool PendingConnections::admit(const net::SocketAddress& peer) {
  if (address().allows(peer)) return true;
  log(LogLevel::warning, peer.to_string(), "is refused: --comch-allow lacks its network");
  return false;
}

void PendingConnections::accept() {
  for (std::size_t i = 0; i < kAcceptedAtOnce; ++i) {
    try {
      auto connection = listener_->accept();
      if (!connection) return;
      take_in(std::move(connection));
    } catch (const std::exception& error) {  // affects only this connection
      log(LogLevel::warning, "a peer", std::string("is not accepted: ") + core::what_of(error));
    }
  }
  try {
    engine_->rewatch(listener_->fd(), EPOLLIN | EPOLLET, *this);  // for those that wait
  } catch (const Error& error) {
    core::log_warning("control connections must wait: {}", error.what());
  }
}

void PendingConnections::take_in(std::unique_ptr<ControlConnection> connection) {
  if (pending_.size() >= kMost && !make_room()) return;
  auto& pending = *pending_.emplace_back(std::make_unique<Pending>(*this, std::move(connection)));
  try {
    engine_->watch(pending.connection->fd(), EPOLLIN, pending);
  } catch (const std::exception& error) {
    log(LogLevel::warning, pending.connection->peer_name(),
        std::string("is not accepted: ") + core::what_of(error));
    return drop(pending);
  }
  // Immediately: the first message of a worker usually arrives with its connection, and a silent
  // connection is the next to be closed to make room.
  receive(pending);
}

/// Drops one unproven connection, of the source that has the most, in the order of their stages,
/// the oldest first. Returns false if there is none.
bool PendingConnections::make_room() {
  std::vector<Pending*> unproven;
  for (const auto& pending : pending_) {
    if (pending->stage != Stage::proven) unproven.push_back(pending.get());
  }
  std::ranges::stable_sort(unproven, {}, &Pending::stage);
  const auto chosen =
      net::choose_to_make_room(unproven, 1, [](const Pending& pending) { return pending.source; });
  if (chosen.empty()) return false;
  log(LogLevel::warning, chosen.front()->connection->peer_name(),
      "is closed to make room for another: it has proven no key yet");
  net::limited_sources.add(net::Door::control);
  drop(*chosen.front());
  return true;
}

/// Handles received data. The connection is no longer pending after its first message or its end.
void PendingConnections::receive(Pending& pending) {
  try {
    const bool has_to_prove = address().takes_key() && pending.stage != Stage::proven;
    if (has_to_prove && !receive_proof(pending)) return;
    auto message = pending.connection->receive();
    if (message) hand_on(pending, *message);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_message) {
      refuse(*pending.connection, Refusal::bad_hello, error.what());
    } else if (error.code() == ErrorCode::not_permitted) {
      log(LogLevel::warning, pending.connection->peer_name(),
          std::string("is refused: ") + error.what());
    } else {
      core::log_debug("a control connection failed early: {}", error.what());
    }
    drop(pending);
  } catch (const std::exception& error) {  // out of memory
    core::log_warning("a control connection failed early: {}", core::what_of(error));
    drop(pending);
  }
}

/// Continues the TLS handshake. Returns whether it has ended with a proof. Throws Error.
bool PendingConnections::receive_proof(Pending& pending) {
  if (pending.stage == Stage::silent) {
    const auto may_have_key = pending.connection->may_have_key();
    if (!may_have_key) return false;
    if (!*may_have_key) {
      throw Error(ErrorCode::not_permitted,
                  "it knows no key of this server; this port is for workers, not for clients");
    }
    if (!limits_.take(pending.source, engine_->run_time())) {
      net::limited_sources.add(net::Door::control);
      throw Error(ErrorCode::not_permitted, "too many of its network prove no key");
    }
    pending.stage = Stage::proving;
  }
  auto message = pending.connection->receive();
  if (!pending.connection->proven()) return false;
  limits_.give_back(pending.source);
  pending.stage = Stage::proven;
  if (!message) return true;
  hand_on(pending, *message);
  return false;
}

void PendingConnections::hand_on(Pending& pending, const ControlMessage& message) {
  auto connection = std::move(pending.connection);
  engine_->unwatch(connection->fd(), pending);
  std::erase_if(pending_, [&](const auto& each) { return each.get() == &pending; });
  try {
    on_first_message_(std::move(connection), message);
  } catch (const std::exception& error) {
    core::log_debug("a control connection failed early: {}", core::what_of(error));
  }
}

/// Closes the connection immediately.
void PendingConnections::drop(const Pending& pending) {
  const auto at =
      std::ranges::find_if(pending_, [&](const auto& each) { return each.get() == &pending; });
  engine_->unwatch(pending.connection->fd(), **at);
  pending_.erase(at);
}

void PendingConnections::refuse(ControlConnection& connection, Refusal code,
                                const std::string& text) {
  log(code == Refusal::busy ? LogLevel::info : LogLevel::warning, connection.peer_name(),
      "is refused: " + text);
  connection.refuse(code, text);
}

void PendingConnections::tick(core::RunTime now) {
  accept();
  limits_.forget(now);
  for (std::size_t i = pending_.size(); i-- != 0;) {
    const Pending& pending = *pending_[i];
    if (now - pending.since >= kGreetTime) drop(pending);
  }
}

/// Logs at most once a second, because any host may connect over a network.
void PendingConnections::log(LogLevel level, const std::string& who, const std::string& what) {
  if (!log_limit_.allow(core::Clock::now())) return;
  core::log(level, "a control connection of {} {} ({} more were not logged)", who, what,
            log_limit_.suppressed());
}

}  // namespace offload::comch
