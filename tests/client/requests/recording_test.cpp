#include "apps/client/requests/recording.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "apps/client/requests/verification.hpp"
#include "protocol/frame.hpp"
#include "tests/support/bytes.hpp"

namespace offload::client {
namespace {

using protocol::MessageId;
using support::Bytes;
using support::bytes_of;

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes asked(std::string_view text) {
  return protocol::make_frame(MessageId::client_request, bytes_of(text));
}

Bytes answered(std::string_view text) {
  return protocol::make_frame(MessageId::client_response, bytes_of(text));
}

std::string refusal_of(const Bytes& content) {
  try {
    Recording::parse(content, "file");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return {};
}

TEST(Recording, HasRequestsInTheirOrderWithTheirResponses) {
  const auto recording =
      Recording::parse(asked("a") + answered("xyz") + asked("") + answered(""), "file");
  ASSERT_EQ(recording.pairs.size(), 2U);
  EXPECT_TRUE(recording.has_responses);
  EXPECT_TRUE(std::ranges::equal(recording.pairs[0].request, bytes_of("a")));
  EXPECT_TRUE(std::ranges::equal(recording.pairs[0].response, bytes_of("xyz")));
  EXPECT_TRUE(recording.pairs[1].request.empty());
}

TEST(Recording, MayHaveNoResponses) {
  const auto recording = Recording::parse(asked("a") + asked("b"), "file");
  EXPECT_EQ(recording.pairs.size(), 2U);
  EXPECT_FALSE(recording.has_responses);
}

TEST(Recording, EachPrefixThatEndsWithinAFrameIsRefused) {
  const auto content = asked("abc") + answered("abc");
  for (std::size_t size = 0; size < content.size(); ++size) {
    const Bytes part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(refusal_of(part).empty(), size == asked("abc").size()) << size;
  }
}

TEST(Recording, SomeResponsesAreNotEnough) {
  const Bytes request = asked("");
  const Bytes response = answered("");
  const std::string strange = "this response belongs to no request, or an earlier request has none";
  EXPECT_EQ(refusal_of(request + request + response), "'file', frame 2 at offset 24: " + strange);
  EXPECT_EQ(refusal_of(request + response + response), "'file', frame 2 at offset 24: " + strange);
  EXPECT_EQ(refusal_of(response), "'file', frame 0 at offset 0: " + strange);
  EXPECT_EQ(refusal_of(request + response + request),
            "'file', frame 3 at offset 36: the last request has no response, although others have "
            "one");
  EXPECT_EQ(refusal_of(request + response + request + request),
            "'file', frame 3 at offset 36: the request before it has no response, although others "
            "have one");
  EXPECT_EQ(refusal_of(request + protocol::make_frame(MessageId::error, {})),
            "'file', frame 1 at offset 12: its kind is 6, neither a request (4) nor a response "
            "(5)");
}

TEST(Recording, HasAtMostAMillionRequests) {
  const Bytes request = asked("");
  Bytes content;
  content.reserve(1'000'001 * request.size());
  for (int i = 0; i < 1'000'000; ++i) {
    content.insert(content.end(), request.begin(), request.end());
  }
  EXPECT_EQ(Recording::parse(content, "file").pairs.size(), 1'000'000U);
  EXPECT_EQ(refusal_of(content + request),
            "'file', frame 1000000 at offset 12000000: more than 1000000 requests");
}

}  // namespace
}  // namespace offload::client
