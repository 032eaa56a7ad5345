#include "apps/client/requests/recording.hpp"

#include <fmt/core.h>

#include <utility>

#include "apps/client/requests/size_mix.hpp"
#include "apps/client/requests/verification.hpp"
#include "core/escape.hpp"
#include "protocol/frame.hpp"

namespace offload::client {
namespace {

using protocol::FrameView;
using protocol::MessageId;

constexpr std::size_t kLongestRecording = std::size_t{512} << 20;
constexpr std::size_t kMostRecorded = 1'000'000;

}  // namespace

Recording Recording::read(const std::string& path) {
  return parse(read_bytes(path, kLongestRecording), path);
}

Recording Recording::parse(std::vector<std::byte> content, const std::string& name) {
  Recording recording;
  recording.content = std::move(content);
  std::size_t responses = 0;
  std::size_t frames = 0;
  std::span<const std::byte> rest = recording.content;
  const auto fail = [&](const std::string& why) {
    throw InvalidInput(fmt::format("'{}', frame {} at offset {}: {}", core::escaped(name), frames,
                                   recording.content.size() - rest.size(), why));
  };
  for (; !rest.empty(); ++frames) {
    const FrameView frame = protocol::parse_frame(rest, kLongestMessage);
    if (frame.state == FrameView::State::incomplete) fail("the file ends within it");
    if (frame.state == FrameView::State::bad) {
      fail(fmt::format("{}; a file of --requests has frames of requests and responses",
                       frame.reason == protocol::Refusal::frame_too_long
                           ? fmt::format("a message longer than {} bytes", kLongestMessage)
                           : std::string(protocol::describe(frame.reason))));
    }
    if (frame.id == MessageId::client_request) {
      if (responses != 0 && responses != recording.pairs.size()) {
        fail("the request before it has no response, although others have one");
      }
      if (recording.pairs.size() == kMostRecorded) fail("more than 1000000 requests");
      recording.pairs.push_back({frame.payload, {}});
    } else if (frame.id == MessageId::client_response) {
      if (responses + 1 != recording.pairs.size()) {
        fail("this response belongs to no request, or an earlier request has none");
      }
      recording.pairs.back().response = frame.payload;
      ++responses;
    } else {
      fail(fmt::format("its kind is {}, neither a request (4) nor a response (5)",
                       static_cast<std::uint32_t>(frame.id)));
    }
    rest = rest.subspan(frame.size());
  }
  if (recording.pairs.empty()) throw InvalidInput(fmt::format("'{}' has no requests", name));
  if (responses != 0 && responses != recording.pairs.size()) {
    fail("the last request has no response, although others have one");
  }
  recording.has_responses = responses != 0;
  return recording;
}

}  // namespace offload::client
