#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/fd.hpp"
#include "tests/fuzz/input.hpp"

namespace offload::fuzz {

/// A stream connection whose middle the script controls: it decides when, in which pieces and with
/// which changes the bytes of one end arrive at the other.
class FuzzedPipe {
 public:
  /// `little`: the ends' sockets have room for only a few kilobytes.
  explicit FuzzedPipe(bool little) {
    for (Side& side : sides_) {
      std::array<int, 2> fds{};
      require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0,
              "a connection");
      const int room = 4096;
      if (little) ::setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
      side.end = core::Fd(fds[0]);
      side.middle = core::Fd(fds[1]);
    }
  }

  /// Returns the socket of one of the two ends; call it once for each.
  core::Fd take_end(std::size_t side) { return std::move(sides_[side].end); }

  /// Carries up to `most` bytes that `from` has sent to the other end. Returns how many.
  std::size_t carry(std::size_t from, std::size_t most) {
    Side& side = sides_[from];
    if (!side.middle.valid()) return 0;
    fill(side, most);
    std::vector<std::byte>& held = side.held;
    if (side.change_at < held.size() && side.change != 0) {
      held[side.change_at] ^= static_cast<std::byte>(std::exchange(side.change, 0));
    }
    const std::size_t size = std::min(most, held.size());
    if (size == 0) return 0;
    const ssize_t sent =
        ::send(sides_[1 - from].middle.get(), held.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return 0;
    held.erase(held.begin(), held.begin() + sent);
    side.change_at -= std::min(side.change_at, static_cast<std::size_t>(sent));
    return static_cast<std::size_t>(sent);
  }
  /// Carries all bytes that `from` has sent but the last `kept`.
  std::size_t carry_all_but(std::size_t from, std::size_t kept) {
    fill(sides_[from], SIZE_MAX);
    const std::size_t held = sides_[from].held.size();
    return carry(from, held - std::min(kept, held));
  }
  /// Changes the byte `at` of the bytes that are carried from `from` next.
  void change(std::size_t from, std::size_t at, std::uint8_t by) {
    sides_[from].change_at = at;
    sides_[from].change = by;
  }
  /// Inserts these bytes before the bytes that are carried next.
  void insert(std::size_t from, std::span<const std::byte> bytes) {
    sides_[from].held.insert(sides_[from].held.begin(), bytes.begin(), bytes.end());
  }
  /// Loses up to `count` of the bytes to carry next. Returns whether there were any.
  bool lose(std::size_t from, std::size_t count) {
    Side& side = sides_[from];
    const std::size_t held = std::min(count, side.held.size());
    side.held.erase(side.held.begin(), side.held.begin() + static_cast<std::ptrdiff_t>(held));
    std::vector<std::byte> lost(count - held);
    const ssize_t rest = lost.empty() || !side.middle.valid()
                             ? 0
                             : ::recv(side.middle.get(), lost.data(), lost.size(), MSG_DONTWAIT);
    return held != 0 || rest > 0;
  }
  /// Ends the direction to `to`: it receives nothing more.
  void end(std::size_t to) { ::shutdown(sides_[to].middle.get(), SHUT_WR); }
  void cut() {
    for (Side& side : sides_) side.middle.reset();
  }

 private:
  struct Side {
    core::Fd end;
    core::Fd middle;
    std::vector<std::byte> held{};
    std::size_t change_at = 0;
    std::uint8_t change = 0;
  };

  /// Reads the bytes that the side has sent, until it holds `most` bytes.
  static void fill(Side& side, std::size_t most) {
    while (side.middle.valid() && side.held.size() < most) {
      std::array<std::byte, 8192> chunk;
      const ssize_t count = ::recv(side.middle.get(), chunk.data(),
                                   std::min(chunk.size(), most - side.held.size()), MSG_DONTWAIT);
      if (count <= 0) return;
      side.held.insert(side.held.end(), chunk.begin(), chunk.begin() + count);
    }
  }

  std::array<Side, 2> sides_;
};

}  // namespace offload::fuzz
