#include "protocol/control.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/escape.hpp"
#include "protocol/bytes.hpp"

namespace offload::protocol {
namespace {

template <class Message>
std::optional<Message> if_finished(const Reader& reader, Message message) {
  if (!reader.finished()) return std::nullopt;
  return message;
}

std::vector<std::byte> with_names(Writer& writer, const std::vector<std::string>& names) {
  if (names.size() > kMaxServices) {
    throw core::Error(
        core::ErrorCode::invalid_value,
        std::to_string(names.size()) + " services: " + std::to_string(kMaxServices) + " at most");
  }
  writer.integer(static_cast<std::uint8_t>(names.size()));
  for (const std::string& name : names) writer.string(name);
  return writer.take();
}

std::vector<std::byte> read_bytes(Reader& reader) {
  const auto bytes = reader.bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> read_names(Reader& reader) {
  std::vector<std::string> names(reader.integer<std::uint8_t>());
  for (std::string& name : names) name = core::escaped(reader.string());
  return names;
}

}  // namespace

bool is_service_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kMaxServiceName &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::vector<std::byte> Hello::encode() const {
  return with_names(Writer{}
                        .integer(kControlMagic)
                        .integer(version)
                        .integer(capabilities)
                        .integer(max_channels)
                        .integer(max_message_length)
                        .string(backend),
                    services);
}

std::optional<Hello> Hello::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  if (reader.integer<std::uint32_t>() != kControlMagic) return std::nullopt;
  Hello message;
  message.version = reader.integer<std::uint16_t>();
  // The rest may differ in another version, which the receiver refuses by its number.
  if (message.version != kControlVersion)
    return reader.ok() ? std::optional(message) : std::nullopt;
  message.capabilities = reader.integer<std::uint32_t>();
  message.max_channels = reader.integer<std::uint32_t>();
  message.max_message_length = reader.integer<std::uint32_t>();
  message.backend = core::escaped(reader.string());
  message.services = read_names(reader);
  return if_finished(reader, message);
}

std::vector<std::byte> Welcome::encode() const {
  return with_names(Writer{}.integer(version).integer(channel_count).integer(keep_alive_ms),
                    services);
}

std::optional<Welcome> Welcome::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  Welcome message;
  message.version = reader.integer<std::uint16_t>();
  if (message.version != kControlVersion)
    return reader.ok() ? std::optional(message) : std::nullopt;
  message.channel_count = reader.integer<std::uint16_t>();
  message.keep_alive_ms = reader.integer<std::uint32_t>();
  message.services = read_names(reader);
  return if_finished(reader, message);
}

std::vector<std::byte> ChannelDescriptor::encode() const {
  return Writer{}
      .integer(channel)
      .integer(depth)
      .integer(max_message_length)
      .bytes(access)
      .bytes(response_access)
      .integer(max_response_length)
      .integer(service)
      .take();
}

std::optional<ChannelDescriptor> ChannelDescriptor::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  ChannelDescriptor message;
  message.channel = reader.integer<std::uint32_t>();
  message.depth = reader.integer<std::uint32_t>();
  message.max_message_length = reader.integer<std::uint32_t>();
  message.access = read_bytes(reader);
  message.response_access = read_bytes(reader);
  message.max_response_length = reader.integer<std::uint32_t>();
  message.service = reader.integer<std::uint8_t>();
  return if_finished(reader, message);
}

std::vector<std::byte> ExchangeConsumerId::encode() const {
  return Writer{}.integer(channel).integer(consumer_id).take();
}

std::optional<ExchangeConsumerId> ExchangeConsumerId::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  ExchangeConsumerId message;
  message.channel = reader.integer<std::uint32_t>();
  message.consumer_id = reader.integer<std::uint32_t>();
  return if_finished(reader, message);
}

std::vector<std::byte> Assignment::encode() const {
  return Writer{}.integer(channels).take();
}

std::optional<Assignment> Assignment::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  return if_finished(reader, Assignment{reader.integer<std::uint32_t>()});
}

std::vector<std::byte> StartShutdown::encode() const {
  return Writer{}.integer(static_cast<std::uint8_t>(reason)).take();
}

std::optional<StartShutdown> StartShutdown::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  const auto reason = reader.integer<std::uint8_t>();
  if (reason > static_cast<std::uint8_t>(ShutdownReason::released)) return std::nullopt;
  return if_finished(reader, StartShutdown{static_cast<ShutdownReason>(reason)});
}

std::vector<std::byte> KeepAlive::encode() const {
  return Writer{}.integer(sequence).take();
}

std::optional<KeepAlive> KeepAlive::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  return if_finished(reader, KeepAlive{reader.integer<std::uint64_t>()});
}

std::vector<std::byte> UserMessage::encode() const {
  return Writer{}.integer(taken).bytes(bytes).take();
}

std::optional<UserMessage> UserMessage::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  UserMessage message;
  message.taken = reader.integer<std::uint32_t>();
  message.bytes = read_bytes(reader);
  return if_finished(reader, message);
}

std::vector<std::byte> AttachChannel::encode() const {
  return Writer{}.integer(channel).fixed(token).bytes(endpoint).take();
}

std::optional<AttachChannel> AttachChannel::decode(std::span<const std::byte> payload) {
  Reader reader(payload);
  AttachChannel message;
  message.channel = reader.integer<std::uint32_t>();
  reader.fixed(message.token);
  message.endpoint = read_bytes(reader);
  return if_finished(reader, message);
}

}  // namespace offload::protocol
