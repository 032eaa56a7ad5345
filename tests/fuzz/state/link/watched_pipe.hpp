#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fd.hpp"
#include "protocol/frame.hpp"

namespace offload::fuzz {

using Bytes = std::vector<std::byte>;

/// The whole frames that `stream` begins with.
std::vector<Bytes> frames_of(std::span<const std::byte> stream);
bool is(const Bytes& frame, protocol::MessageId id);
/// Whether one of its frames is a proof.
bool has_proof(std::span<const std::byte> stream);

/// The middle of a connection between a worker (0) and a server (1), and what went through it.
class WatchedPipe {
 public:
  /// What the ends' own sockets are connected to.
  WatchedPipe(core::Fd worker, core::Fd server) : sockets_{std::move(worker), std::move(server)} {}

  /// Takes what `from` has sent so far.
  void collect(std::size_t from);
  /// Carries up to `most` bytes of it on.
  void carry(std::size_t from, std::size_t most);

  // What touches it. Of `from`:
  void change(std::size_t from, std::size_t at, std::uint8_t by);
  void insert(std::size_t from, std::span<const std::byte> bytes);
  void lose(std::size_t from, std::size_t count);
  /// To `to` nothing comes any more.
  void end(std::size_t to);
  void cut();

  [[nodiscard]] bool touched() const noexcept { return touched_; }
  /// By `from`; and what has been carried on of it and in place of it.
  [[nodiscard]] const Bytes& sent(std::size_t from) const { return sent_.at(from); }
  [[nodiscard]] const Bytes& delivered(std::size_t from) const { return delivered_.at(from); }

 private:
  std::array<core::Fd, 2> sockets_;
  std::array<Bytes, 2> sent_{};
  std::array<Bytes, 2> held_{};
  std::array<Bytes, 2> delivered_{};
  bool touched_ = false;
};

}  // namespace offload::fuzz
