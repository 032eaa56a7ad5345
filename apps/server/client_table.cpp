#include "apps/server/client_table.hpp"

#include <algorithm>
#include <utility>

#include "protocol/frame.hpp"

namespace offload::server {
namespace {

/// One recv takes up to this much, and always a whole frame.
constexpr std::size_t kReceiveSize = 64 * 1024;
/// Buffers that stay with the thread when it has no use for them: so many bytes, or so many.
constexpr std::size_t kKeptBytes = 16 * 1024 * 1024;
constexpr std::size_t kKeptBuffers = 16;

std::size_t receive_buffer_size(std::uint32_t max_message_length) {
  return std::max(kReceiveSize, 2 * (protocol::kFrameHeaderSize + max_message_length));
}

}  // namespace

void Client::on_ready(Connection&) {
  table_->make_ready(*this);
}

ClientTable::ClientTable(progress::Engine& engine, std::uint32_t max_message_length)
    : engine_(&engine),
      buffers_(receive_buffer_size(max_message_length),
               std::max(kKeptBuffers, kKeptBytes / receive_buffer_size(max_message_length))) {}

Client& ClientTable::add(net::Stream stream) {
  clients_.push_back(std::make_unique<Client>(std::move(stream), *engine_, buffers_, *this));
  clients_.back()->index_ = clients_.size() - 1;
  return *clients_.back();
}

void ClientTable::drain() {
  for (const auto& client : clients_) {
    client->connection().drain();
    make_ready(*client);
  }
}

bool ClientTable::close_lingering() {
  bool worked = false;
  while (Client* const first = lingering_.front()) {
    if (first->connection().linger_deadline() > engine_->now()) break;
    lingering_.pop_front();
    first->connection().close();
    make_ready(*first);
    worked = true;
  }
  return worked;
}

core::TimePoint ClientTable::linger_deadline() noexcept {
  Client* const first = lingering_.front();
  return first != nullptr ? first->connection().linger_deadline() : core::TimePoint::max();
}

void ClientTable::erase(Client& client) {
  const std::size_t index = client.index_;
  std::swap(clients_[index], clients_.back());
  clients_[index]->index_ = index;
  clients_.pop_back();
}

}  // namespace offload::server
