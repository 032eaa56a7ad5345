#include <algorithm>
#include <vector>

#include "protocol/frame.hpp"
#include "tests/fuzz/input.hpp"

/// An arbitrary stream, parsed whole and in pieces: both must see the same frames.
namespace offload::fuzz {
namespace {

using protocol::FrameView;
using protocol::MessageId;
using State = FrameView::State;
using Bytes = std::vector<std::byte>;

struct Frame {
  MessageId id;
  Bytes payload;
  bool operator==(const Frame&) const = default;
};

/// The result of parsing a stream.
struct Parsed {
  std::vector<Frame> frames;
  State end = State::incomplete;
  protocol::Refusal reason{};

  /// Removes the whole frames from the front of `stream`.
  void take(Bytes& stream, std::uint32_t max_length) {
    while (end != State::bad) {
      const FrameView view = protocol::parse_frame(stream, max_length);
      if (view.state == State::incomplete) return;
      if (view.state == State::bad) {
        end = view.state;
        reason = view.reason;
        return;
      }
      require(view.payload.size() <= max_length, "no payload is over the limit");
      frames.push_back({view.id, {view.payload.begin(), view.payload.end()}});
      const auto size = static_cast<std::ptrdiff_t>(view.size());
      const Bytes taken(stream.begin(), stream.begin() + size);
      require(protocol::make_frame(view.id, view.payload) == taken, "a frame is what was taken");
      stream.erase(stream.begin(), stream.begin() + size);
    }
  }
};

void read_as_error(const Frame& frame) {
  if (frame.id != MessageId::error || frame.payload.size() < 4) return;
  const auto message = protocol::parse_error(frame.payload);
  require(static_cast<std::uint32_t>(message.code) ==
              protocol::load_big_endian<std::uint32_t>(frame.payload.data()),
          "an error frame's code is read as it was written");
  require(std::none_of(message.text.begin(), message.text.end(),
                       [](char each) { return (each >= 0 && each < ' ') || each == 0x7f; }),
          "an error frame's text can be logged");
}

void run(Input input) {
  const std::uint32_t max_length = input.integer<std::uint8_t>() * 2U;
  const std::size_t step = 1 + input.integer<std::uint8_t>() % 32U;
  const auto bytes = input.rest();

  Bytes stream(bytes.begin(), bytes.end());
  Parsed whole;
  whole.take(stream, max_length);

  Parsed split;
  Bytes received;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const auto piece = bytes.subspan(at, std::min(step, bytes.size() - at));
    received.insert(received.end(), piece.begin(), piece.end());
    received.shrink_to_fit();  // so that a checker sees every read beyond the received bytes
    split.take(received, max_length);
  }
  require(split.frames == whole.frames, "the same frames");
  require(split.end == whole.end && split.reason == whole.reason, "the same end");
  for (const Frame& frame : whole.frames) read_as_error(frame);
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
