#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// The messages of an application on one side of a control channel. Limits the messages that the
/// peer has not taken, to leave room for the session's own messages. One thread.
class UserMessages {
 public:
  /// The maximum number of messages that the peer has not taken.
  static constexpr std::uint32_t kMostUntaken = 8;

  /// Returns the payload that carries `bytes`, and counts it as sent. Throws Error: invalid_value
  /// for no bytes or more than protocol::kMaxUserMessage, full while kMostUntaken are not taken.
  std::vector<std::byte> next(std::span<const std::byte> bytes) {
    if (bytes.empty() || bytes.size() > protocol::kMaxUserMessage) {
      throw core::Error(core::ErrorCode::invalid_value,
                        "a user message of " + std::to_string(bytes.size()) +
                            " bytes; allowed are 1 to " +
                            std::to_string(protocol::kMaxUserMessage));
    }
    if (sent_ - taken_by_peer_ == kMostUntaken) {
      throw core::Error(core::ErrorCode::full, "the peer has " + std::to_string(kMostUntaken) +
                                                   " user messages to take before the next");
    }
    ++sent_;
    return protocol::UserMessage{taken_, {bytes.begin(), bytes.end()}}.encode();
  }
  /// Returns the peer's message; empty if `payload` only acknowledges messages. Throws Error
  /// (bad_message).
  std::vector<std::byte> take(std::span<const std::byte> payload) {
    auto message = protocol::UserMessage::decode(payload);
    if (!message || message->taken - taken_by_peer_ > sent_ - taken_by_peer_) {
      throw core::Error(core::ErrorCode::bad_message, "malformed user message");
    }
    taken_by_peer_ = message->taken;
    if (!message->bytes.empty()) ++taken_;
    return std::move(message->bytes);
  }
  /// Returns the payload that acknowledges the messages received; must be sent after each message.
  [[nodiscard]] std::vector<std::byte> acknowledgement() const {
    return protocol::UserMessage{taken_}.encode();
  }

 private:
  std::uint32_t sent_ = 0;  ///< these three wrap around
  std::uint32_t taken_by_peer_ = 0;
  std::uint32_t taken_ = 0;
};

}  // namespace offload::comch
