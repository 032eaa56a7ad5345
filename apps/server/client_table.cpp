#include "apps/server/client_table.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/probe.hpp"
#include "net/source/make_room.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;

/// One receive takes up to this much, and two whole frames if these are not longer than that.
constexpr std::size_t kReceiveSize = 64 * 1024;
constexpr std::size_t kLongestReceiveSize = 256 * 1024;
/// The long blocks that a thread keeps when it has no use for them: this number of bytes, or this
/// number of the longest frame. To allocate them again would cost a page fault for each page.
constexpr std::size_t kKeptBytes = 16 * 1024 * 1024;
constexpr std::size_t kKeptFrames = 16;
/// A client that was refused is given this long to read why and close. Closing at once, with its
/// bytes unread, would make the kernel reset the connection and take the reason from it.
constexpr core::Duration kLingerTime = std::chrono::seconds(1);
/// The time until the next search for clients that hold too much, when there were none.
constexpr core::Duration kShedInterval = std::chrono::milliseconds(10);
/// Idle clients that are ended at once: that costs some 10 us each.
constexpr std::size_t kEndedAtOnce = 256;

std::size_t receive_size(std::size_t longest_frame) {
  return std::clamp(2 * longest_frame, kReceiveSize, kLongestReceiveSize);
}

std::size_t frame_size(std::uint32_t max_message_length) {
  return protocol::kFrameHeaderSize + max_message_length;
}

}  // namespace

void Client::on_ready(ClientConnection&) {
  table_->make_ready(*this);
}

ClientTable::ClientTable(progress::Engine& engine, std::uint32_t max_message_length,
                         const ClientLimits& limits, ClientMemory& memory, ThreadMetrics& metrics)
    : engine_(&engine),
      metrics_(&metrics),
      buffers_(std::max(kKeptBytes, kKeptFrames * frame_size(max_message_length))),
      block_size_(receive_size(frame_size(max_message_length))),
      memory_(memory),
      queue_(block_size_),
      lingering_(kLingerTime),
      unfinished_(limits.frame_timeout),
      unsent_(limits.output_timeout),
      idle_(limits.idle_timeout) {}

Client& ClientTable::add(net::Stream stream, Admission admission) {
  clients_.push_back(std::make_unique<Client>(std::move(stream), std::move(admission), *engine_,
                                              buffers_, block_size_, *this));
  Client& added = *clients_.back();
  added.index_ = clients_.size() - 1;
  if (added.counts_for_tls_) ++tls_clients_;
  idle_.start(added, engine_->run_time());
  return added;
}

core::TimePoint ClientTable::pause(Client& client, const WaitingAddresses& waiting) noexcept {
  const auto until = waiting.until(client.admission().address, engine_->now());
  if (client.connection().paused() != until.has_value()) {
    client.connection().set_paused(until.has_value());
    make_ready(client);
  }
  return until.value_or(core::TimePoint::max());
}

core::TimePoint ClientTable::pause(const WaitingAddresses& waiting) noexcept {
  auto first = core::TimePoint::max();
  for (const auto& client : clients_) first = std::min(first, pause(*client, waiting));
  return first;
}

void ClientTable::drain() {
  for (const auto& client : clients_) {
    ClientConnection& connection = client->connection();
    connection.holds_back() ? connection.refuse(Refusal::shutting_down) : connection.drain();
    make_ready(*client);
  }
}

void ClientTable::erase(Client& client) {
  metrics_->closed[static_cast<std::size_t>(client.connection().end())].add();
  OFFLOAD_PROBE1(close, static_cast<int>(client.connection().end()));
  uncount_tls(client);
  const std::size_t index = client.index_;
  std::swap(clients_[index], clients_.back());
  clients_[index]->index_ = index;
  clients_.pop_back();
}

/// For what it has had in a turn. A frame is paid for when it is forwarded, or before that as its
/// pieces come.
void ClientTable::spend(Client& client, std::size_t consumed) noexcept {
  const std::size_t paid = std::exchange(client.charged_, 0);
  if (!client.holds_frames_) {
    client.charged_ = client.connection().input().bytes().size();
  } else if (paid > consumed) {
    client.charged_ = paid - consumed;
  }
  const std::size_t due = consumed + client.charged_;
  queue_.spend(client, due - std::min(due, paid));
}

// ---- Time limits

/// `consumed`: whole frames were taken, so that what is left has just begun.
void ClientTable::set_deadlines(Client& client, bool consumed) noexcept {
  const ClientConnection& connection = client.connection();
  const core::RunTime now = engine_->run_time();
  // A pause is not the client's fault: after it these times begin again.
  const bool paused = connection.paused();
  if (client.holds_frames_ || connection.input().bytes().empty() || paused) {
    unfinished_.stop(client);
  } else if (consumed || !unfinished_.has(client)) {
    unfinished_.start(client, now);
  }
  if (connection.backlog().empty()) {
    unsent_.stop(client);
  } else if (!unsent_.has(client)) {
    client.unsent_until_ = connection.backlog().appended();
    unsent_.start(client, now);
  }
  paused ? idle_.stop(client) : idle_.start(client, now);
}

bool ClientTable::close_overdue() {
  const core::RunTime now = engine_->run_time();
  if (now < next_deadline()) return false;
  while (Client* const client = lingering_.pop_due(now)) {
    client->connection().close();
    make_ready(*client);
  }
  while (Client* const client = unfinished_.pop_due(now)) {
    // Unread input, for example of a client that does not take its responses, may be the rest.
    const ClientConnection& connection = client->connection();
    if (connection.state() != ConnectionState::open) continue;
    if (connection.readable() || !connection.backlog().empty()) {
      unfinished_.start(*client, now);
    } else {
      disconnect(*client, Refusal::frame_timed_out);
    }
  }
  while (Client* const client = unsent_.pop_due(now)) {
    // Once the client has taken all earlier responses, it has the whole time again for later ones.
    const net::Backlog& backlog = client->connection().backlog();
    if (backlog.empty()) continue;
    if (backlog.consumed() < client->unsent_until_) {
      drop(*client, ConnectionEnd::timeout, "it reads its responses too slowly");
    } else {
      client->unsent_until_ = backlog.appended();
      unsent_.start(*client, now);
    }
  }
  while (Client* const client = idle_.pop_due(now)) {
    if (client->connection().state() != ConnectionState::open) continue;
    if (!client->is_quiet()) {
      idle_.start(*client, now);
    } else {
      disconnect(*client, Refusal::idle_timed_out);
    }
  }
  return true;
}

core::RunTime ClientTable::next_deadline() noexcept {
  return std::min({lingering_.next(), unfinished_.next(), unsent_.next(), idle_.next()});
}

// ---- Ends

void ClientTable::log_disconnected(const Client& client, std::string_view reason) noexcept {
  if (!disconnected_log_.allow(engine_->now())) return;
  const auto address = client.admission().address.text();
  core::log_warning("client {}, {}, is disconnected: {} ({} more like this were not logged)",
                    client.admission().number, std::string_view(address), reason,
                    disconnected_log_.suppressed());
}

/// After what it is owed it is told why.
void ClientTable::disconnect(Client& client, Refusal reason) noexcept {
  log_disconnected(client, protocol::describe(reason));
  client.connection().refuse(reason);
  make_ready(client);
}

/// At once: it leaves what it is owed.
void ClientTable::drop(Client& client, ConnectionEnd end, std::string_view reason) noexcept {
  log_disconnected(client, reason);
  client.connection().close(end);
  make_ready(client);
}

/// Ends the clients that hold the most until an eighth is free again, so that it is not called for
/// each block. Iterates over all clients once for each halving of the threshold. Frames that wait
/// for their turn count for no client, but may be most of the lent memory: to end clients that hold
/// less than their share of the excess would not help.
void ClientTable::shed() noexcept {
  if (engine_->now() < next_shed_) return;
  std::size_t threshold = 0;
  for (const auto& client : clients_) threshold = std::max(threshold, client->holds());
  const std::uint64_t enough = memory_.allowed() - memory_.allowed() / 8;
  if (held() <= enough) return (void)memory_.set_held(held());
  // TLS may have half of it, the other half is for messages: within theirs they do not pay for TLS.
  const bool tls_pays =
      held_by_tls() > enough / 2 &&
      end_quiet(std::min(held() - enough, held_by_tls() - enough / 2) / kTlsMemory + 1);
  const auto is_done = [&] {
    return held() <= enough || (tls_pays && buffers_.lent() <= enough / 2);
  };
  const std::uint64_t share =
      (held() - std::min(held(), enough)) / std::max<std::size_t>(clients_.size(), 1);
  for (; threshold > share; threshold /= 2) {
    for (const auto& client : clients_) {
      if (is_done()) break;
      const ClientConnection& connection = client->connection();
      if (client->holds() < threshold) continue;
      if (connection.backlog().empty()) {
        disconnect(*client, Refusal::out_of_memory);
      } else {
        drop(*client, ConnectionEnd::memory, protocol::describe(Refusal::out_of_memory));
      }
    }
  }
  if (held() <= enough) return (void)memory_.set_held(held());
  next_shed_ = engine_->now() + kShedInterval;
}

/// Ends up to `count` quiet clients in TLS of the sources that have the most of these, those first
/// that have sent nothing for the longest time. Their memory counts as free from now on: the next
/// round frees it. Returns whether there were any.
bool ClientTable::end_quiet(std::size_t count) noexcept try {
  std::vector<Client*> quiet;
  for (const auto& client : clients_) {
    if (client->counts_for_tls_ && client->is_quiet() &&
        client->connection().state() == ConnectionState::open) {
      quiet.push_back(client.get());
    }
  }
  std::ranges::sort(quiet, {}, &Client::read_at);
  const auto source_of = [](const Client& client) { return client.admission().address.source(); };
  for (Client* const client :
       net::choose_to_make_room(quiet, std::min(count, kEndedAtOnce), source_of)) {
    net::limited_sources.add(net::Door::clients);
    disconnect(*client, Refusal::out_of_memory);
    uncount_tls(*client);
  }
  return !quiet.empty();
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace offload::server
