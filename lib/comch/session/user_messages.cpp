#include "comch/session/user_messages.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::comch {

using core::Error;
using core::ErrorCode;

std::vector<std::byte> UserMessages::next(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() > protocol::kMaxUserMessage) {
    throw Error(ErrorCode::invalid_value, "a user message of " + std::to_string(bytes.size()) +
                                              " bytes; allowed are 1 to " +
                                              std::to_string(protocol::kMaxUserMessage));
  }
  if (sent_ - taken_by_peer_ == kMostUntaken) {
    throw Error(ErrorCode::full, "the peer has " + std::to_string(kMostUntaken) +
                                     " user messages to take before the next");
  }
  ++sent_;
  return protocol::UserMessage{taken_, {bytes.begin(), bytes.end()}}.encode();
}

std::vector<std::byte> UserMessages::take(std::span<const std::byte> payload) {
  auto message = protocol::UserMessage::decode(payload);
  if (!message || message->taken - taken_by_peer_ > sent_ - taken_by_peer_) {
    throw Error(ErrorCode::bad_message, "malformed user message");
  }
  taken_by_peer_ = message->taken;
  if (!message->bytes.empty()) ++taken_;
  return std::move(message->bytes);
}

}  // namespace offload::comch
