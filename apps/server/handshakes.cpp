#include "apps/server/handshakes.hpp"

#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "net/source/make_room.hpp"
#include "protocol/frame.hpp"
#include "protocol/other_protocols.hpp"

namespace offload::server {
namespace {

/// Like for refused clients: closing immediately, with unread bytes, would make the kernel
/// reset the connection, and the client would lose the alert.
constexpr core::Duration kAlertTime = std::chrono::seconds(1);
/// One in this number of the maximum of clients makes room at once: it takes a search of all.
constexpr std::size_t kShareThatMakesRoom = 64;

HandshakeFailure kind_of(const net::TlsStream& stream) {
  if (stream.certificate_error() == X509_V_ERR_CERT_REVOKED) return HandshakeFailure::revoked;
  if (stream.certificate_error() != X509_V_OK) return HandshakeFailure::certificate;
  return stream.peer_is_plain() ? HandshakeFailure::plain : HandshakeFailure::other;
}

/// Tells a peer that does not use TLS that it has to, in the protocol that it speaks.
void answer_plainly(const net::Stream& stream) {
  if (!stream.tls()->peer_is_plain()) return;
  std::array<std::byte, protocol::kErrorFrameRoom> frame;
  const void* answer = frame.data();
  std::size_t size = protocol::store_error_frame(frame.data(), protocol::Refusal::tls_required);
  if (stream.tls()->peer_speaks_http()) {
    answer = protocol::kHttpRefusal.data();
    size = protocol::kHttpRefusal.size();
  }
  (void)::send(stream.fd(), answer, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Drops what the client still sends. Returns whether it has closed.
bool discard(int socket) {
  std::array<std::byte, 16384> scratch;
  for (int i = 0; i < 4; ++i) {
    const ssize_t count = ::recv(socket, scratch.data(), scratch.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) return true;
  }
  return true;  // it floods: it has had its chance
}

}  // namespace

Handshakes::Client::Client(core::Fd socket, Admission admitted, Handshakes& table)
    : owner(&table),
      stream(std::move(socket), *table.context_),
      admission(std::move(admitted)),
      deadline(table.engine_->run_time() + table.time_) {
  owner->engine_->watch(stream.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

Handshakes::Client::~Client() {
  if (stream.valid()) owner->engine_->unwatch(stream.fd(), *this);
}

void Handshakes::Client::on_events(std::uint32_t) {
  owner->make_ready(*this);
}

Handshakes::Handshakes(progress::Engine& engine, ThreadMetrics& metrics, OnDone on_done,
                       core::Duration time, std::size_t most)
    : engine_(&engine),
      metrics_(&metrics),
      on_done_(std::move(on_done)),
      time_(time),
      most_(most) {}

void Handshakes::add(core::Fd socket, Admission admission) {
  clients_.push_back(std::make_unique<Client>(std::move(socket), std::move(admission), *this));
  clients_.back()->index = clients_.size() - 1;
  under_way_.push_back(*clients_.back());
  if (clients_.size() > most_) make_room();
}

/// Closes those that wait for their peer, the oldest first, then those that wait for their turn,
/// the last first, of the sources that have the most.
void Handshakes::make_room() {
  std::vector<Client*> all;
  std::vector<Client*> ready;
  for (auto* const list : {&failed_, &under_way_}) {
    for (Client* client = list->front(); client != nullptr; client = list->next(*client)) {
      (ready_.has(*client) ? ready : all).push_back(client);
    }
  }
  all.insert(all.end(), ready.rbegin(), ready.rend());
  const auto source_of = [](const Client& client) { return client.admission.address.source(); };
  for (Client* const client :
       net::choose_to_make_room(all, most_ / kShareThatMakesRoom + 1, source_of)) {
    net::limited_sources.add(net::Door::tls);
    if (limit_log_.allow(engine_->now())) {
      core::log_warning(
          "client {}, {}, is disconnected in its TLS handshake to make room for another: its "
          "address has the most of {} handshakes ({} more like this were not logged)",
          client->admission.number, std::string_view(client->admission.address.text()),
          clients_.size(), limit_log_.suppressed());
    }
    remove(*client);
  }
}

void Handshakes::make_ready(Client& client) noexcept {
  if (ready_.has(client)) return;
  try {
    ready_.push_back(client.admission.address.source(), client);
  } catch (const std::bad_alloc&) {
    give_up(client, {});
  }
}

/// Closes it after `time`.
void Handshakes::give_up(Client& client, core::Duration time) noexcept {
  client.failed = true;
  client.deadline = engine_->run_time() + time;
  core::IntrusiveList<Client, Due>::remove(client);
  failed_.push_back(client);
}

core::RunTime Handshakes::deadline() noexcept {
  core::RunTime first = core::RunTime::max();
  if (Client* const client = under_way_.front()) first = client->deadline;
  if (Client* const client = failed_.front()) first = std::min(first, client->deadline);
  return first;
}

bool Handshakes::close_late() {
  bool worked = false;
  for (auto* const list : {&under_way_, &failed_}) {
    while (Client* const client = list->front()) {
      if (client->deadline > engine_->run_time()) break;
      if (!client->failed)
        note_failure(*client, HandshakeFailure::timeout, "it did not finish in time");
      remove(*client);
      worked = true;
    }
  }
  return worked;
}

bool Handshakes::step() {
  Client* const client = ready_.pop_front();
  if (client == nullptr) return false;
  if (!client->failed) {
    go_on(*client);
  } else if (discard(client->stream.fd())) {
    remove(*client);
  }
  return true;
}

void Handshakes::go_on(Client& client) {
  switch (client.stream.handshake()) {
    case net::TlsHandshake::under_way: return;
    case net::TlsHandshake::done: {
      const std::unique_ptr<Client> owned = remove(client);
      engine_->unwatch(owned->stream.fd(), *owned);
      return on_done_(std::move(owned->stream), std::move(owned->admission));
    }
    case net::TlsHandshake::failed:
      note_failure(client, kind_of(*client.stream.tls()), client.stream.describe_error(EPROTO));
      answer_plainly(client.stream);
      client.stream.end_sending();
      give_up(client, kAlertTime);
      make_ready(client);
  }
}

void Handshakes::note_failure(const Client& client, HandshakeFailure kind,
                              const std::string& reason) {
  metrics_->tls_failures[static_cast<std::size_t>(kind)].add();
  if (!failure_log_.allow(engine_->now())) return;
  core::log_warning(
      "client {}, {}: the TLS handshake failed: {} ({} more like this were not logged)",
      client.admission.number, std::string_view(client.admission.address.text()), reason,
      failure_log_.suppressed());
}

/// Takes it out of the table.
std::unique_ptr<Handshakes::Client> Handshakes::remove(Client& client) {
  const std::size_t index = client.index;
  std::swap(clients_[index], clients_.back());
  clients_[index]->index = index;
  auto removed = std::move(clients_.back());
  clients_.pop_back();
  ready_.remove(client);
  core::IntrusiveList<Client, Due>::remove(client);
  return removed;
}

}  // namespace offload::server
