#include "tests/fuzz/state/link/watched_pipe.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "protocol/control.hpp"

namespace offload::fuzz {

std::vector<Bytes> frames_of(std::span<const std::byte> stream) {
  std::vector<Bytes> frames;
  while (true) {
    const auto frame = protocol::parse_frame(stream, protocol::kMaxControlLength);
    if (frame.state != protocol::FrameView::State::complete) return frames;
    frames.emplace_back(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(frame.size()));
    stream = stream.subspan(frame.size());
  }
}

bool is(const Bytes& frame, protocol::MessageId id) {
  return protocol::FrameHeader::load(frame.data()).msg_id == static_cast<std::uint32_t>(id);
}

bool has_proof(std::span<const std::byte> stream) {
  return std::ranges::any_of(
      frames_of(stream), [](const Bytes& frame) { return is(frame, protocol::MessageId::proof); });
}

void WatchedPipe::collect(std::size_t from) {
  std::array<std::byte, 4096> chunk;
  while (sockets_[from].valid()) {
    const ssize_t count = ::recv(sockets_[from].get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    sent_[from].insert(sent_[from].end(), chunk.begin(), chunk.begin() + count);
    held_[from].insert(held_[from].end(), chunk.begin(), chunk.begin() + count);
  }
}

void WatchedPipe::carry(std::size_t from, std::size_t most) {
  collect(from);
  Bytes& held = held_[from];
  const core::Fd& to = sockets_[1 - from];
  const std::size_t size = std::min(most, held.size());
  if (size == 0 || !to.valid()) return;
  const ssize_t sent = ::send(to.get(), held.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0) return;
  delivered_[from].insert(delivered_[from].end(), held.begin(), held.begin() + sent);
  held.erase(held.begin(), held.begin() + sent);
}

void WatchedPipe::change(std::size_t from, std::size_t at, std::uint8_t by) {
  collect(from);
  if (at >= held_[from].size()) return;
  touched_ = true;
  held_[from][at] ^= static_cast<std::byte>(by);
}

void WatchedPipe::insert(std::size_t from, std::span<const std::byte> bytes) {
  collect(from);
  touched_ = true;
  held_[from].insert(held_[from].begin(), bytes.begin(), bytes.end());
}

void WatchedPipe::lose(std::size_t from, std::size_t count) {
  collect(from);
  touched_ = true;
  Bytes& held = held_[from];
  held.erase(held.begin(),
             held.begin() + static_cast<std::ptrdiff_t>(std::min(count, held.size())));
}

void WatchedPipe::end(std::size_t to) {
  touched_ = true;
  ::shutdown(sockets_[to].get(), SHUT_WR);
}

void WatchedPipe::cut() {
  touched_ = true;
  for (const std::size_t side : {0U, 1U}) {
    collect(side);
    sockets_[side].reset();
  }
}

}  // namespace offload::fuzz
