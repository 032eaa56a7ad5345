#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/bytes.hpp"

/// The frame that every message of the suite travels in (docs/wire-protocol.md):
///   u32 wire_size (of the whole frame) | u32 msg_id | u32 length | `length` bytes of payload
/// all big endian. Version 1 of it is what DOCA's dpu_gpu_remote_offload client speaks.
namespace offload::protocol {

inline constexpr std::size_t kFrameHeaderSize = 12;

enum class MessageId : std::uint32_t {
  start_shutdown = 0,
  shutdown_complete = 1,
  exchange_consumer_id_request = 2,
  exchange_consumer_id_response = 3,
  client_request = 4,
  client_response = 5,
  error = 6,
  // Control channel only (protocol/control.hpp).
  hello = 16,
  welcome = 17,
  channel_descriptor = 18,
  keep_alive = 19,
  // Over TCP also these.
  challenge = 20,
  proof = 21,
  attach_channel = 22,
  channel_attached = 23,
};

/// Why a frame, a request or a peer was refused: the code in an error frame. Stable numbers.
enum class Refusal : std::uint32_t {
  frame_too_short = 1,     ///< wire_size is below the 12 bytes of a header
  frame_too_long = 2,      ///< the payload is longer than --max-message-length
  length_mismatch = 3,     ///< wire_size is not 12 + length
  unknown_message = 4,     ///< no such msg_id
  misplaced_message = 5,   ///< a msg_id that has no business on this connection
  worker_unavailable = 6,  ///< no worker attached within --worker-timeout
  shutting_down = 7,       ///< the server ends and could not answer any more
  worker_failed = 8,       ///< the worker refused the request, or answered nonsense
  bad_version = 9,         ///< control channel: the peer speaks another version
  bad_hello = 10,          ///< control channel: malformed or unacceptable greeting
  busy = 11,               ///< control channel: another worker is attached
  bad_key = 12,            ///< control channel: the peer has another key, or none
};

/// A sentence for people about `reason`.
std::string_view describe(Refusal reason) noexcept;

/// The fields of a frame's header.
struct FrameHeader {
  std::uint32_t wire_size;
  std::uint32_t msg_id;
  std::uint32_t length;

  /// Reads a header. `from` holds at least kFrameHeaderSize bytes.
  static FrameHeader load(const std::byte* from) noexcept {
    return {load_big_endian<std::uint32_t>(from), load_big_endian<std::uint32_t>(from + 4),
            load_big_endian<std::uint32_t>(from + 8)};
  }
};

/// Writes the header of a frame with `length` bytes of payload to `to` (kFrameHeaderSize bytes).
inline void store_header(std::byte* to, MessageId id, std::uint32_t length) noexcept {
  store_big_endian(to, static_cast<std::uint32_t>(kFrameHeaderSize) + length);
  store_big_endian(to + 4, static_cast<std::uint32_t>(id));
  store_big_endian(to + 8, length);
}

/// What stands at the front of a stream.
struct FrameView {
  enum class State : std::uint8_t { incomplete, complete, bad };
  State state = State::incomplete;
  MessageId id = MessageId::client_request;   ///< complete only
  std::span<const std::byte> payload;         ///< complete only: refers into the stream
  Refusal reason = Refusal::frame_too_short;  ///< bad only

  /// Bytes of the stream that a complete frame takes.
  [[nodiscard]] std::size_t size() const noexcept { return kFrameHeaderSize + payload.size(); }
};

/// Looks at the frame at the front of `stream`, whose payload may be `max_length` bytes long.
/// A bad header is reported as soon as enough of it is there, without waiting for its payload.
/// Any msg_id of MessageId is complete here; whether it belongs is for the caller to say.
FrameView parse_frame(std::span<const std::byte> stream, std::uint32_t max_length) noexcept;

/// A whole frame, for what is not on the data path.
std::vector<std::byte> make_frame(MessageId id, std::span<const std::byte> payload);

/// The payload of an error frame: u32 code, then UTF-8 text.
struct ErrorMessage {
  Refusal code;
  std::string text;
};

/// A whole error frame.
std::vector<std::byte> make_error_frame(Refusal code, std::string_view text);

/// Reads an error frame's payload; a payload too short for a code reads as code 0.
ErrorMessage parse_error(std::span<const std::byte> payload);

}  // namespace offload::protocol
