#include <algorithm>
#include <string>
#include <vector>

#include "protocol/control.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, decoded as each control message: what is accepted is exactly what encode()
/// writes, but for texts.
namespace offload::fuzz {
namespace {

/// A message with a text, which is escaped as it is decoded: not what encode() writes.
void run_as_text(const std::string& text) {
  require(std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
          "a text can be logged");
}

template <class Message>
void run_as(std::span<const std::byte> payload) {
  const auto message = Message::decode(payload);
  if (!message) return;
  const auto encoded = message->encode();
  require(encoded.size() <= protocol::kMaxControlLength, "it fits a control frame");
  require(Message::decode(encoded).has_value(), "what is encoded can be decoded");
  require(encoded == std::vector<std::byte>(payload.begin(), payload.end()),
          "a message is what was decoded");
}

void run(Input input) {
  const auto payload = input.rest();
  if (payload.size() > protocol::kMaxControlLength) return;  // is refused unread
  if (const auto hello = protocol::Hello::decode(payload)) run_as_text(hello->backend);
  if (const auto welcome = protocol::Welcome::decode(payload)) {
    for (const auto& service : welcome->services) run_as_text(service);
  }
  run_as<protocol::ChannelDescriptor>(payload);
  run_as<protocol::ExchangeConsumerId>(payload);
  run_as<protocol::Assignment>(payload);
  run_as<protocol::StartShutdown>(payload);
  run_as<protocol::KeepAlive>(payload);
  run_as<protocol::UserMessage>(payload);
  run_as<protocol::AttachChannel>(payload);
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
