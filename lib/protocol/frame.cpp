#include "protocol/frame.hpp"

#include <algorithm>

#include "core/escape.hpp"

namespace offload::protocol {
namespace {

FrameView bad(Refusal reason) noexcept {
  return {.state = FrameView::State::bad, .reason = reason};
}

struct ReasonWords {
  std::string_view name;
  std::string_view description;
};

ReasonWords words_of(Refusal reason) noexcept {
  using enum Refusal;
  switch (reason) {
    case frame_too_short: return {"frame_too_short", "the frame is shorter than its own header"};
    case frame_too_long:
      return {"frame_too_long", "the message is longer than this server accepts"};
    case length_mismatch:
      return {"length_mismatch", "the frame's size and its message's length differ"};
    case unknown_message: return {"unknown_message", "there is no message of this kind"};
    case misplaced_message:
      return {"misplaced_message", "a message of this kind does not belong here"};
    case worker_unavailable:
      return {"worker_unavailable", "no worker is attached to process the request"};
    case shutting_down: return {"shutting_down", "the server is shutting down"};
    case worker_failed: return {"worker_failed", "the worker could not process the request"};
    case bad_version:
      return {"bad_version", "the peer speaks another version of the control protocol"};
    case bad_hello: return {"bad_hello", "the peer's greeting is not acceptable"};
    case busy: return {"busy", "no more workers can attach"};
    case request_timed_out: return {"request_timed_out", "the worker did not answer in time"};
    case worker_stuck: return {"worker_stuck", "the worker has stopped answering"};
    case out_of_memory: return {"out_of_memory", "the memory for clients is exhausted"};
    case frame_timed_out: return {"frame_timed_out", "the rest of the frame did not come in time"};
    case idle_timed_out: return {"idle_timed_out", "the client sent no request for too long"};
    case too_many_clients: return {"too_many_clients", "the limit of clients is reached"};
    case too_many_of_address:
      return {"too_many_of_address", "the limit of clients of this address is reached"};
    case tls_required: return {"tls_required", "this port requires TLS"};
  }
  return {{}, "unknown reason"};
}

}  // namespace

std::string_view describe(Refusal reason) noexcept {
  return words_of(reason).description;
}

std::string_view name_of(Refusal reason) noexcept {
  return words_of(reason).name;
}

FrameView parse_other(std::span<const std::byte> stream, std::uint32_t max_length) noexcept {
  if (stream.size() < sizeof(std::uint32_t)) return {};
  const auto wire_size = load_big_endian<std::uint32_t>(stream.data());
  if (wire_size < kFrameHeaderSize) return bad(Refusal::frame_too_short);
  if (wire_size - kFrameHeaderSize > max_length) return bad(Refusal::frame_too_long);
  if (stream.size() < kFrameHeaderSize) return {};
  const FrameHeader header = FrameHeader::load(stream.data());
  if (header.length != wire_size - kFrameHeaderSize) return bad(Refusal::length_mismatch);
  if (!is_known(header.msg_id)) return bad(Refusal::unknown_message);
  return {};
}

std::vector<std::byte> make_frame(MessageId id, std::span<const std::byte> payload) {
  std::vector<std::byte> frame(kFrameHeaderSize + payload.size());
  store_header(frame.data(), id, static_cast<std::uint32_t>(payload.size()));
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderSize);
  return frame;
}

std::size_t store_error_frame(std::byte* to, Refusal code) noexcept {
  constexpr std::size_t kText = kFrameHeaderSize + sizeof(std::uint32_t);
  const std::string_view text = describe(code).substr(0, kErrorFrameRoom - kText);
  store_header(to, MessageId::error,
               static_cast<std::uint32_t>(sizeof(std::uint32_t) + text.size()));
  store_big_endian(to + kFrameHeaderSize, static_cast<std::uint32_t>(code));
  std::transform(text.begin(), text.end(), to + kText,
                 [](char character) { return static_cast<std::byte>(character); });
  return kText + text.size();
}

std::vector<std::byte> make_error_frame(Refusal code, std::string_view text) {
  return make_frame(MessageId::error,
                    Writer{}.integer(static_cast<std::uint32_t>(code)).raw(text).take());
}

ErrorMessage parse_error(std::span<const std::byte> payload) {
  Reader reader(payload);
  ErrorMessage message{static_cast<Refusal>(reader.integer<std::uint32_t>()), {}};
  const auto text = reader.rest();
  message.text = core::escaped({reinterpret_cast<const char*>(text.data()), text.size()});
  return message;
}

}  // namespace offload::protocol
