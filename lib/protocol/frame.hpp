#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/bytes.hpp"

/// The frame around every message of the suite (docs/reference/wire-protocol.md):
///   u32 wire_size (of the whole frame) | u32 msg_id | u32 length | `length` bytes of payload
/// all big endian. Version 1 of the frame is that of DOCA's dpu_gpu_remote_offload client.
namespace offload::protocol {

inline constexpr std::size_t kFrameHeaderSize = 12;

/// The kind of a message, msg_id of its frame. Stable numbers.
enum class MessageId : std::uint32_t {
  start_shutdown = 0,
  shutdown_complete = 1,
  exchange_consumer_id_request = 2,
  exchange_consumer_id_response = 3,
  client_request = 4,
  client_response = 5,
  error = 6,
  // Only on control connections (protocol/control.hpp).
  hello = 16,
  welcome = 17,
  channel_descriptor = 18,
  keep_alive = 19,
  detach = 24,  ///< worker → server, no payload: let this worker go
  assignment = 25,
  user_message = 26,
  // Only on control connections over a network. 20 and 21 were proofs of the key, before TLS.
  attach_channel = 22,
  channel_attached = 23,
};

/// The reason why a frame, a request or a peer was refused: the code of an error frame. Stable
/// numbers.
enum class Refusal : std::uint32_t {
  frame_too_short = 1,     ///< wire_size is below the 12 bytes of a header
  frame_too_long = 2,      ///< the payload is longer than --max-message-length
  length_mismatch = 3,     ///< wire_size is not 12 + length
  unknown_message = 4,     ///< a msg_id that does not exist
  misplaced_message = 5,   ///< a msg_id that is not allowed on this connection or in its state
  worker_unavailable = 6,  ///< no worker attached within --worker-timeout
  shutting_down = 7,       ///< the server shuts down before it could answer
  worker_failed = 8,       ///< the worker refused the request, or its response is malformed
  bad_version = 9,         ///< control connection: the peer has another protocol version
  bad_hello = 10,          ///< control connection: malformed or unacceptable Hello
  busy = 11,               ///< control connection: as many workers as may be are attached
  // 12 was for a peer with another key, before TLS.
  request_timed_out = 13,    ///< no answer within --request-timeout
  worker_stuck = 14,         ///< control connection: no answer for --worker-timeout
  out_of_memory = 20,        ///< the memory for clients is used up, and this one holds much of it
  frame_timed_out = 21,      ///< the rest of a frame did not come within --frame-timeout
  idle_timed_out = 22,       ///< no request for --idle-timeout
  too_many_clients = 23,     ///< --max-clients are there
  too_many_of_address = 24,  ///< --max-clients-per-address are there
  tls_required = 25,         ///< the client does not use TLS, and this port requires it
};

/// A description of `reason` for people.
std::string_view describe(Refusal reason) noexcept;

/// Returns its name in this list, for programs: "worker_unavailable"; empty for another code.
std::string_view name_of(Refusal reason) noexcept;

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

/// The result of parsing the frame at the front of a stream.
struct FrameView {
  enum class State : std::uint8_t { incomplete, complete, bad };
  State state = State::incomplete;
  MessageId id = MessageId::client_request;   ///< complete only
  std::span<const std::byte> payload{};       ///< complete only: refers into the stream
  Refusal reason = Refusal::frame_too_short;  ///< bad only

  /// Bytes of the stream that a complete frame takes.
  [[nodiscard]] std::size_t size() const noexcept { return kFrameHeaderSize + payload.size(); }
};

/// Returns whether `id` is one of MessageId.
constexpr bool is_known(std::uint32_t id) noexcept {
  return id <= static_cast<std::uint32_t>(MessageId::error) ||
         (id >= static_cast<std::uint32_t>(MessageId::hello) &&
          id <= static_cast<std::uint32_t>(MessageId::user_message));
}

/// Does the work of parse_frame() for a stream that is not a whole valid frame.
FrameView parse_other(std::span<const std::byte> stream, std::uint32_t max_length) noexcept;

/// Parses the frame at the front of `stream`, whose payload may have up to `max_length` bytes. A
/// bad header is reported as soon as enough of it is there, before its payload. Accepts every
/// msg_id of MessageId; the caller checks whether it is allowed there.
inline FrameView parse_frame(std::span<const std::byte> stream, std::uint32_t max_length) noexcept {
  // In its caller, as nearly all frames end here.
  if (stream.size() >= kFrameHeaderSize) {
    const FrameHeader header = FrameHeader::load(stream.data());
    if (header.length <= max_length && header.length <= stream.size() - kFrameHeaderSize &&
        header.wire_size == kFrameHeaderSize + header.length && is_known(header.msg_id)) {
      return {.state = FrameView::State::complete,
              .id = static_cast<MessageId>(header.msg_id),
              .payload = stream.subspan(kFrameHeaderSize, header.length)};
    }
  }
  return parse_other(stream, max_length);
}

/// A whole frame. It allocates: not for the data path.
std::vector<std::byte> make_frame(MessageId id, std::span<const std::byte> payload);

/// The payload of an error frame: u32 code, then UTF-8 text, which is for people alone.
struct ErrorMessage {
  Refusal code;
  std::string text;
};

/// Room for the frame that store_error_frame() writes.
inline constexpr std::size_t kErrorFrameRoom = 128;
/// Writes a whole error frame with describe(code) to `to` (kErrorFrameRoom bytes); returns its
/// size.
std::size_t store_error_frame(std::byte* to, Refusal code) noexcept;

/// A whole error frame. It allocates: not for the data path.
std::vector<std::byte> make_error_frame(Refusal code, std::string_view text);

/// Parses the payload of an error frame; one too short for a code yields code 0. Its text is
/// escaped (core/escape.hpp): it can be logged and printed.
ErrorMessage parse_error(std::span<const std::byte> payload);

}  // namespace offload::protocol
