#include "comch/session/user_messages.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using protocol::kMaxUserMessage;
using protocol::UserMessage;
using support::Bytes;
using support::random_bytes;
using support::thrown_by;

TEST(UserMessagesOfAChannel, OneThatIsAsLongAsMayBeFillsAControlMessage) {
  UserMessages here;
  UserMessages there;
  const Bytes message = random_bytes(kMaxUserMessage, 1);
  const Bytes payload = here.next(message);
  EXPECT_EQ(payload.size(), protocol::kMaxControlLength);
  EXPECT_EQ(there.take(payload), message);
}

TEST(UserMessagesOfAChannel, NoneAndTooLongOnesAreRefused) {
  UserMessages here;
  for (const std::size_t size : {std::size_t{0}, std::size_t{kMaxUserMessage} + 1}) {
    const auto error = thrown_by([&] { here.next(Bytes(size)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_value) << size;
  }
}

TEST(UserMessagesOfAChannel, OnlySoManyAreOnTheirWay) {
  UserMessages here;
  UserMessages there;
  const Bytes message = random_bytes(10, 1);
  std::vector<Bytes> under_way;
  for (std::uint32_t i = 0; i < UserMessages::kMostUntaken; ++i) {
    under_way.push_back(here.next(message));
  }
  EXPECT_EQ(thrown_by([&] { here.next(message); }).code(), ErrorCode::full);
  EXPECT_EQ(there.take(under_way.front()), message);
  EXPECT_TRUE(here.take(there.acknowledgement()).empty());
  here.next(message);
  EXPECT_EQ(thrown_by([&] { here.next(message); }).code(), ErrorCode::full);
}

TEST(UserMessagesOfAChannel, APeerThatTakesWhatWasNotSentLies) {
  UserMessages here;
  here.next(random_bytes(10, 1));
  for (const std::uint32_t taken : {2U, ~0U}) {
    const auto error = thrown_by([&] { here.take(UserMessage{taken}.encode()); });
    EXPECT_EQ(error.code(), ErrorCode::bad_message) << taken;
  }
  EXPECT_TRUE(here.take(UserMessage{1}.encode()).empty());
  const auto back = thrown_by([&] { here.take(UserMessage{0}.encode()); });
  EXPECT_EQ(back.code(), ErrorCode::bad_message) << "it had taken one";
}

TEST(UserMessagesOfAChannel, MalformedOnesAreRefused) {
  UserMessages here;
  const auto error = thrown_by([&] { here.take(random_bytes(3, 1)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
}

}  // namespace
}  // namespace offload::comch
