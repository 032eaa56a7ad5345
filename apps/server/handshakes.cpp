#include "apps/server/handshakes.hpp"

#include <array>
#include <cerrno>
#include <utility>

namespace offload::server {
namespace {

/// As for clients that were refused: to close at once, with bytes unread, would make the kernel
/// reset the connection and take the alert from the client.
constexpr core::Duration kAlertTime = std::chrono::seconds(1);

/// Takes what the client still sends. Returns whether it has closed.
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
  if (!core::IntrusiveList<Client, Ready>::is_linked(*this)) owner->ready_.push_back(*this);
}

Handshakes::Handshakes(progress::Engine& engine, OnDone on_done, core::Duration time)
    : engine_(&engine), on_done_(std::move(on_done)), time_(time) {}

void Handshakes::add(core::Fd socket, Admission admission) {
  clients_.push_back(std::make_unique<Client>(std::move(socket), std::move(admission), *this));
  clients_.back()->index = clients_.size() - 1;
  under_way_.push_back(*clients_.back());
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
      if (!client->failed) log_failure(*client, "it was not done in time");
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
      log_failure(client, client.stream.describe_error(EPROTO));
      client.failed = true;
      client.stream.end_sending();
      client.deadline = engine_->run_time() + kAlertTime;
      core::IntrusiveList<Client, Due>::remove(client);
      failed_.push_back(client);
      ready_.push_back(client);
  }
}

void Handshakes::log_failure(const Client& client, const std::string& reason) {
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
  core::IntrusiveList<Client, Ready>::remove(client);
  core::IntrusiveList<Client, Due>::remove(client);
  return removed;
}

}  // namespace offload::server
