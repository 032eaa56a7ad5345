#include "apps/client/load/checker.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "protocol/other_protocols.hpp"

namespace offload::client {
namespace {

using protocol::FrameHeader;
using protocol::FrameView;
using protocol::MessageId;
using protocol::Refusal;

std::size_t longest_of(const Expected& expected) noexcept {
  return expected.length == Expected::kAnyLength ? kLongestMessage : expected.length;
}

FrameView parse(std::span<const std::byte> stream, const Expected& expected) noexcept {
  return protocol::parse_frame(
      stream, static_cast<std::uint32_t>(std::max(longest_of(expected), kMaxErrorLength)));
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
  switch (protocol::recognise(stream)) {
    case protocol::OtherProtocol::http:
      return "received HTTP: this is not the port of an offload server's clients";
    case protocol::OtherProtocol::tls: return "received TLS: the server requires --tls";
    case protocol::OtherProtocol::none: break;
  }
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

/// Describes a response of `length` bytes, of which `payload` has arrived.
std::string describe_difference(std::span<const std::byte> payload, std::size_t length,
                                const Expected& expected) {
  if (expected.bytes == nullptr) {
    const std::string begin = payload.empty() ? "" : "; it begins with " + hex(payload, 0);
    return fmt::format("the response has {} bytes, expected {}{}", length, expected.length, begin);
  }
  const std::span right(expected.bytes, expected.length);
  const auto differing = std::ranges::mismatch(payload, right).in1;
  const auto offset = static_cast<std::size_t>(differing - payload.begin());
  const auto shown = [offset](std::span<const std::byte> bytes) {
    return offset < bytes.size() ? hex(bytes, offset) : std::string("nothing");
  };
  if (length == right.size()) {
    return fmt::format("the response differs at offset {} of {}: expected {}, got {}", offset,
                       length, shown(right), shown(payload));
  }
  const bool is_seen = !payload.empty() || length == 0;
  return fmt::format("the response has {} bytes, expected {}{}", length, right.size(),
                     is_seen ? fmt::format("; it differs at offset {}: expected {}, got {}", offset,
                                           shown(right), shown(payload))
                             : "");
}

/// A frame that is longer than the response may be is a response to something else.
ErrorKind kind_of_bad(Refusal reason) noexcept {
  return reason == Refusal::frame_too_long ? ErrorKind::mismatch : ErrorKind::bad_frame;
}

/// Judges an incomplete frame; a wrong one might never become complete.
FrameCheck judge_part(std::span<const std::byte> stream, const Expected& expected) noexcept {
  if (stream.size() < protocol::kFrameHeaderSize) return {};
  const auto header = FrameHeader::load(stream.data());
  if (is_response(header.msg_id)) {
    if (is_right_length(header.length, expected)) return {};
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

/// Does the work of judge() for a stream that does not begin with a right response.
FrameCheck judge_other(std::span<const std::byte> stream, const Expected& expected) noexcept {
  const FrameView view = parse(stream, expected);
  switch (view.state) {
    case FrameView::State::bad: return {FrameCheck::State::wrong, 0, kind_of_bad(view.reason)};
    case FrameView::State::incomplete: return judge_part(stream, expected);
    case FrameView::State::complete: break;
  }
  if (is_response(static_cast<std::uint32_t>(view.id))) {
    return {FrameCheck::State::wrong, view.size()};
  }
  if (view.id != MessageId::error) return {FrameCheck::State::wrong, 0, ErrorKind::bad_frame};
  return {FrameCheck::State::refused, view.size(), kind_of(code_of(view.payload))};
}

}  // namespace

FrameCheck judge(std::span<const std::byte> stream, const Expected& expected) noexcept {
  const std::size_t size = right_frame(stream, expected);
  if (size != 0) return {FrameCheck::State::right, size};
  return judge_other(stream, expected);
}

std::string describe_fault(std::span<const std::byte> stream, const Expected& expected) {
  const FrameView view = parse(stream, expected);
  const bool has_header = stream.size() >= protocol::kFrameHeaderSize;
  const auto header = has_header ? FrameHeader::load(stream.data()) : FrameHeader{};
  const bool is_too_long = view.state == FrameView::State::bad && has_header &&
                           view.reason == Refusal::frame_too_long && is_response(header.msg_id) &&
                           header.wire_size - protocol::kFrameHeaderSize == header.length &&
                           expected.length != Expected::kAnyLength;
  if (view.state == FrameView::State::bad && !is_too_long) {
    return describe_bad_frame(stream, view.reason, longest_of(expected));
  }
  if (!is_response(header.msg_id)) {
    return view.id == MessageId::error
               ? describe_server_error(view.payload)
               : fmt::format("received a message of kind {}, expected a response (5)",
                             header.msg_id);
  }
  const auto arrived = stream.subspan(protocol::kFrameHeaderSize);
  return describe_difference(arrived.first(std::min<std::size_t>(arrived.size(), header.length)),
                             header.length, expected);
}

}  // namespace offload::client
