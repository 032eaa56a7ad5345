#include "apps/server/client_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace offload::server {
namespace {

/// One receive takes no more: a long frame is no reason to keep others waiting.
constexpr std::size_t kLongestPiece = 512 * 1024;

ConnectionEnd end_of(protocol::Refusal reason) noexcept {
  using protocol::Refusal;
  switch (reason) {
    case Refusal::frame_timed_out:
    case Refusal::idle_timed_out: return ConnectionEnd::timeout;
    case Refusal::out_of_memory: return ConnectionEnd::memory;
    case Refusal::shutting_down: return ConnectionEnd::shutdown;
    default: return ConnectionEnd::protocol;
  }
}

bool would_block() noexcept {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

ClientConnection::ClientConnection(net::Stream stream, progress::Engine& engine,
                                   memory::BlockCache& cache, std::size_t block_size,
                                   ConnectionOwner& owner)
    : stream_(std::move(stream)),
      engine_(&engine),
      owner_(&owner),
      input_(cache, block_size),
      backlog_(cache) {
  engine_->watch(stream_.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

ClientConnection::~ClientConnection() {
  close();
}

void ClientConnection::on_events(std::uint32_t epoll_events) {
  if ((epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  if ((epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((epoll_events & EPOLLOUT) != 0) {
    if (stream_.wants_write()) readable_ = true;  // a receive may have waited for it, in TLS
    if (!backlog_.empty()) send_backlog();
  }
  if (state_ == State::lingering) discard();
  owner_->on_ready(*this);
}

std::size_t ClientConnection::receive(net::WallTime* arrival) {
  auto room = input_.room(frame_size());
  if (room.empty()) {
    fail_for_memory();
    return 0;
  }
  room = room.first(std::min(room.size(), kLongestPiece));
  const ssize_t count =
      arrival == nullptr ? stream_.receive(room) : stream_.receive(room, *arrival);
  if (count > 0) {
    input_.append(static_cast<std::size_t>(count));
    // Less than asked for: the socket is empty, and the next bytes make a new event. The end of
    // file may already be behind these, though.
    readable_ = static_cast<std::size_t>(count) == room.size() || hung_up_ || stream_.has_pending();
    return static_cast<std::size_t>(count);
  }
  readable_ = false;
  if (count == 0) {
    end_of_file_ = true;
    apply(ConnectionEvent::end_of_file);
  } else if (!would_block()) {
    close(ConnectionEnd::reset);
  }
  return 0;
}

std::size_t ClientConnection::send(net::OutputBatch& output) {
  if (chain_.empty()) return 0;
  auto vectors = output.vectors(std::exchange(chain_, {}));
  if (state_ == State::closed || state_ == State::lingering) return 0;
  const std::size_t size = net::OutputBatch::size_of(vectors);
  if (backlog_.empty()) {
    const ssize_t sent = stream_.send(vectors);
    if (sent < 0 && !would_block()) {
      close(ConnectionEnd::reset);
      return 0;
    }
    auto rest = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    if (rest == size) return size;
    for (iovec& piece : vectors) {
      const std::size_t taken = std::min(rest, piece.iov_len);
      rest -= taken;
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + taken;
      piece.iov_len -= taken;
    }
  }
  for (const iovec& piece : vectors) {
    if (!backlog_.append({static_cast<const std::byte*>(piece.iov_base), piece.iov_len})) {
      fail_for_memory();
      return 0;
    }
  }
  return size;
}

/// The bytes of the frame that its input begins with, if they are known, else 0. Their number was
/// checked when its frames were taken.
std::size_t ClientConnection::frame_size() const noexcept {
  const auto bytes = input_.bytes();
  return bytes.size() < sizeof(std::uint32_t)
             ? 0
             : protocol::load_big_endian<std::uint32_t>(bytes.data());
}

void ClientConnection::fail_for_memory() noexcept {
  out_of_memory_ = true;
  close(ConnectionEnd::memory);
}

void ClientConnection::send_backlog() {
  while (!backlog_.empty()) {
    const ssize_t sent = stream_.send(backlog_.bytes());
    if (sent < 0 && !would_block()) return close(ConnectionEnd::reset);
    if (sent <= 0) return;
    backlog_.consume(static_cast<std::size_t>(sent));
  }
}

void ClientConnection::refuse(protocol::Refusal reason, std::string_view text) noexcept {
  reason_ = reason;
  refusal_text_ = text;
  apply(ConnectionEvent::refuse, end_of(reason));
}

void ClientConnection::finish(net::OutputBatch& output) {
  if (state_ == State::refusing) {
    output.commit(chain_, refusal_text_.empty()
                              ? protocol::store_error_frame(output.room(), reason_)
                              : refusal_text_.copy(reinterpret_cast<char*>(output.room()),
                                                   refusal_text_.size()));
    apply(ConnectionEvent::refusal_sent);
    send(output);
    if (!finishing()) {
      // A slow client gets the rest when it reads. There is no time for that if it must make room.
      if (reason_ == protocol::Refusal::out_of_memory) close();
      return;
    }
  }
  if (end_of_file_) {
    stream_.close_notify();
    return close();
  }
  apply(ConnectionEvent::all_sent);
  discard();
}

/// Goes to the next state, and does what is done on entering it.
void ClientConnection::apply(ConnectionEvent event, ConnectionEnd end) noexcept {
  const State next = next_state(state_, event);
  if (state_ == State::open) end_ = end;
  if (std::exchange(state_, next) == next) return;
  switch (next) {
    case State::open:
    case State::draining: return;
    case State::refusing: return input_.clear();
    case State::lingering: stream_.end_sending(); return;
    case State::closed:
      engine_->unwatch(stream_.fd(), *this);
      stream_.close();
      input_.clear();
      backlog_.clear();
  }
}

void ClientConnection::discard() {
  std::array<std::byte, 16384> scratch;
  // A bounded share of a client's flood: the next event or the deadline goes on.
  for (int i = 0; i < 64; ++i) {
    const ssize_t count = ::recv(stream_.fd(), scratch.data(), scratch.size(), 0);
    if (count < 0 && would_block()) return;
    if (count <= 0) return close();
  }
}

}  // namespace offload::server
