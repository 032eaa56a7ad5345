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
  EXPECT_NE(refusal_of(asked("") + asked("") + answered("")), "");
  EXPECT_NE(refusal_of(asked("") + answered("") + asked("")), "");
  EXPECT_NE(refusal_of(asked("") + answered("") + asked("") + asked("")), "");
  EXPECT_NE(refusal_of(asked("") + answered("") + answered("")), "");
  EXPECT_NE(refusal_of(answered("")), "");
  EXPECT_NE(refusal_of(protocol::make_frame(MessageId::error, {})), "");
}

}  // namespace
}  // namespace offload::client
