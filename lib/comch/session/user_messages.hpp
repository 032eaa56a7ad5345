#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/control.hpp"

namespace offload::comch {

/// The messages of an application on one side of a control channel, and how many of them the peer
/// has not taken: so few that they leave room for the session's own messages. One thread.
class UserMessages {
 public:
  /// Messages on their way to the peer.
  static constexpr std::uint32_t kMostUntaken = 8;

  /// The payload that carries `bytes`, which counts as sent. Throws Error: invalid_value for none
  /// or more than protocol::kMaxUserMessage, full while the peer has kMostUntaken to take.
  std::vector<std::byte> next(std::span<const std::byte> bytes);
  /// The peer's message; empty where `payload` only says what the peer has taken. Throws Error
  /// (bad_message).
  std::vector<std::byte> take(std::span<const std::byte> payload);
  /// The payload that says what was taken, to be sent after each message.
  [[nodiscard]] std::vector<std::byte> acknowledgement() const {
    return protocol::UserMessage{taken_}.encode();
  }

 private:
  std::uint32_t sent_ = 0;  ///< these three wrap around
  std::uint32_t taken_by_peer_ = 0;
  std::uint32_t taken_ = 0;
};

}  // namespace offload::comch
