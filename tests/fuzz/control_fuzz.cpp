#include <vector>

#include "protocol/control.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, decoded as each control message: what is accepted is exactly what encode() writes.
namespace offload::fuzz {
namespace {

/// Whether the whole of `message` was looked at: of another version, only the number is.
template <class Message>
bool is_of_this_version(const Message&) {
  return true;
}
bool is_of_this_version(const protocol::Hello& message) {
  return message.version == protocol::kControlVersion;
}
bool is_of_this_version(const protocol::Welcome& message) {
  return message.version == protocol::kControlVersion;
}

template <class Message>
void run_as(std::span<const std::byte> payload) {
  const auto message = Message::decode(payload);
  if (!message) return;
  const auto encoded = message->encode();
  require(encoded.size() <= protocol::kMaxControlLength, "it fits a control frame");
  require(Message::decode(encoded).has_value(), "what is encoded can be decoded");
  if (!is_of_this_version(*message)) return;
  require(encoded == std::vector<std::byte>(payload.begin(), payload.end()),
          "a message is what was decoded");
}

void run(Input input) {
  const auto payload = input.rest();
  run_as<protocol::Hello>(payload);
  run_as<protocol::Welcome>(payload);
  run_as<protocol::ChannelDescriptor>(payload);
  run_as<protocol::ExchangeConsumerId>(payload);
  run_as<protocol::KeepAlive>(payload);
  run_as<protocol::Challenge>(payload);
  run_as<protocol::Proof>(payload);
  run_as<protocol::AttachChannel>(payload);
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
