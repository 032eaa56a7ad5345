#include "apps/client/load/checker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace offload::client {
namespace {

using protocol::FrameHeader;
using protocol::FrameView;
using protocol::MessageId;
using protocol::Refusal;

bool is_response(std::uint32_t id) noexcept {
  return id == static_cast<std::uint32_t>(MessageId::client_response) ||
         id == static_cast<std::uint32_t>(MessageId::client_request);
}

FrameView parse(std::span<const std::byte> stream, std::size_t expected_length) noexcept {
  return protocol::parse_frame(
      stream, static_cast<std::uint32_t>(std::max(expected_length, kMaxErrorLength)));
}

bool equal(std::span<const std::byte> one, std::span<const std::byte> other) noexcept {
  // An empty span may have a null pointer, which memcmp does not allow.
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

/// The first bytes from `offset` on, in hexadecimal.
std::string hex(std::span<const std::byte> bytes, std::size_t offset) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = offset; i < std::min(bytes.size(), offset + kShown); ++i) {
    text += fmt::format("{}{:02x}", i == offset ? "" : " ", std::to_integer<unsigned>(bytes[i]));
  }
  return bytes.size() > offset + kShown ? text + " ..." : text;
}

std::string describe_bad_frame(std::span<const std::byte> stream, Refusal reason,
                               std::size_t expected_length) {
  const auto wire_size = protocol::load_big_endian<std::uint32_t>(stream.data());
  if (reason == Refusal::frame_too_long) {
    return fmt::format("received a frame of {} bytes, expected {}", wire_size,
                       protocol::kFrameHeaderSize + expected_length);
  }
  return fmt::format("received a bad frame ({}; its first bytes: {})", protocol::describe(reason),
                     hex(stream.first(std::min(stream.size(), protocol::kFrameHeaderSize)), 0));
}

std::string describe_server_error(std::span<const std::byte> payload) {
  const auto error = protocol::parse_error(payload);
  const auto reason = error.text.empty() ? std::string(protocol::describe(error.code)) : error.text;
  return fmt::format("the server reports error {}: {}", static_cast<std::uint32_t>(error.code),
                     reason);
}

std::string describe_difference(std::span<const std::byte> payload,
                                std::span<const std::byte> expected) {
  const auto differing = std::mismatch(payload.begin(), payload.end(), expected.begin()).first;
  const auto offset = static_cast<std::size_t>(differing - payload.begin());
  return fmt::format("the response differs at offset {} of {}: expected {}, got {}", offset,
                     expected.size(), hex(expected, offset), hex(payload, offset));
}

/// A frame that is longer than the response may be is a response to something else.
ErrorKind kind_of_bad(Refusal reason) noexcept {
  return reason == Refusal::frame_too_long ? ErrorKind::mismatch : ErrorKind::bad_frame;
}

/// Judges an incomplete frame; a wrong one might never become complete.
FrameCheck judge_part(std::span<const std::byte> stream, std::size_t expected_length) noexcept {
  if (stream.size() < protocol::kFrameHeaderSize) return {};
  const auto header = FrameHeader::load(stream.data());
  if (is_response(header.msg_id)) {
    if (header.length == expected_length) return {};
    return {FrameCheck::State::wrong, 0, ErrorKind::mismatch};
  }
  if (header.msg_id == static_cast<std::uint32_t>(MessageId::error)) return {};
  return {FrameCheck::State::wrong, 0, ErrorKind::bad_frame};
}

/// The code of an error frame; 0 if it is too short for one.
Refusal code_of(std::span<const std::byte> payload) noexcept {
  if (payload.size() < sizeof(std::uint32_t)) return Refusal{};
  return static_cast<Refusal>(protocol::load_big_endian<std::uint32_t>(payload.data()));
}

}  // namespace

FrameCheck judge(std::span<const std::byte> stream, std::span<const std::byte> expected) noexcept {
  const FrameView view = parse(stream, expected.size());
  switch (view.state) {
    case FrameView::State::bad: return {FrameCheck::State::wrong, 0, kind_of_bad(view.reason)};
    case FrameView::State::incomplete: return judge_part(stream, expected.size());
    case FrameView::State::complete: break;
  }
  if (is_response(static_cast<std::uint32_t>(view.id))) {
    return {equal(view.payload, expected) ? FrameCheck::State::right : FrameCheck::State::wrong,
            view.size()};
  }
  if (view.id != MessageId::error) return {FrameCheck::State::wrong, 0, ErrorKind::bad_frame};
  return {FrameCheck::State::refused, view.size(), kind_of(code_of(view.payload))};
}

std::string describe_fault(std::span<const std::byte> stream, std::span<const std::byte> expected) {
  const FrameView view = parse(stream, expected.size());
  if (view.state == FrameView::State::bad) {
    return describe_bad_frame(stream, view.reason, expected.size());
  }
  const auto header = FrameHeader::load(stream.data());
  if (!is_response(header.msg_id)) {
    return view.id == MessageId::error
               ? describe_server_error(view.payload)
               : fmt::format("received a message of kind {}, expected a response (5)",
                             header.msg_id);
  }
  if (header.length != expected.size()) {
    return fmt::format("the response has {} bytes, expected {}", header.length, expected.size());
  }
  return describe_difference(view.payload, expected);
}

}  // namespace offload::client
