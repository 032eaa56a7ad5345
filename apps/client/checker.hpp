#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "protocol/frame.hpp"

namespace offload::client {

/// An error frame longer than this counts as a bad frame.
inline constexpr std::size_t kMaxErrorLength = 4096;

/// How the front of the response stream looks.
struct Verdict {
  enum class State : std::uint8_t {
    incomplete,  ///< not all of it is there yet, and what is there is right
    right,       ///< a response, every byte as expected
    wrong,       ///< anything else: describe_fault says what
  };
  State state = State::incomplete;
  std::size_t size = 0;  ///< right only: bytes of the frame
};

/// Judges the frame at the front of `stream`, which must be a response (msg_id 5; the reference
/// server's 4 will do) with the payload `expected`. A wrong header is `wrong` without waiting for
/// its payload.
Verdict judge(std::span<const std::byte> stream, std::span<const std::byte> expected) noexcept;

/// What is wrong with a stream that judge() found wrong: the length, the first byte that differs
/// with a few after it, the server's error message, ... One line of printable text.
std::string describe_fault(std::span<const std::byte> stream, std::span<const std::byte> expected);

/// `text` with '?' for whatever could disturb a terminal or a log.
std::string printable(std::string text);

}  // namespace offload::client
