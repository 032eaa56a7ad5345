#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "apps/client/load/errors.hpp"
#include "apps/client/requests/verification.hpp"
#include "protocol/frame.hpp"

namespace offload::client {

/// An error frame longer than this counts as a bad frame.
inline constexpr std::size_t kMaxErrorLength = 4096;

/// The result of checking the front of the response stream.
struct FrameCheck {
  enum class State : std::uint8_t {
    incomplete,  ///< a part of a frame, right so far
    right,       ///< a response, every byte as expected
    refused,     ///< an error frame
    wrong,       ///< anything else
  };
  State state = State::incomplete;
  std::size_t size = 0;  ///< bytes of the frame; 0 if what came is no frame, or no whole one
  ErrorKind error = ErrorKind::mismatch;  ///< refused and wrong only; describe_fault() says more
};

inline bool is_response(std::uint32_t msg_id) noexcept {
  return msg_id == static_cast<std::uint32_t>(protocol::MessageId::client_response) ||
         msg_id == static_cast<std::uint32_t>(protocol::MessageId::client_request);
}

inline bool is_right_length(std::size_t length, const Expected& expected) noexcept {
  return length == expected.length ||
         (expected.length == Expected::kAnyLength && length <= kLongestMessage);
}

/// Returns the size of the frame at the front of `stream` if judge() finds it right, else 0.
/// Inline: a client with many requests in flight does little else.
inline std::size_t right_frame(std::span<const std::byte> stream,
                               const Expected& expected) noexcept {
  if (stream.size() < protocol::kFrameHeaderSize) return 0;
  const auto header = protocol::FrameHeader::load(stream.data());
  const std::size_t size = protocol::kFrameHeaderSize + header.length;
  // No bytes may be expected, or none in particular, which memcmp does not allow.
  const bool is_right =
      is_response(header.msg_id) && size <= stream.size() && header.wire_size == size &&
      is_right_length(header.length, expected) &&
      (expected.bytes == nullptr ||
       std::memcmp(stream.data() + protocol::kFrameHeaderSize, expected.bytes, header.length) == 0);
  return is_right ? size : 0;
}

/// Checks the frame at the front of `stream`, which must be a response (msg_id 5, or 4 as the
/// reference server sends) with a payload as `expected` says. A wrong header is `wrong` before its
/// payload has arrived.
FrameCheck judge(std::span<const std::byte> stream, const Expected& expected) noexcept;

/// Describes what is wrong with a stream that judge() found wrong or refused: the lengths, where
/// the bytes begin to differ and the first of them, the server's error message, ... One line of
/// printable text.
std::string describe_fault(std::span<const std::byte> stream, const Expected& expected);

}  // namespace offload::client
