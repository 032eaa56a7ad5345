#include <gtest/gtest.h>

#include <vector>

#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/test_channel.hpp"

namespace offload::kernels::test {
namespace {

/// How far a former worker got with a message before it was killed.
enum class Left { unanswered, half_answered, answered };

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kMaxLength = 600;

Octets request_of(std::uint64_t sequence) {
  constexpr std::uint32_t kLengths[] = {30, 600, 0, 372, 373, 1};
  return random_octets(kLengths[sequence % std::size(kLengths)]);
}

/// Unlike what any service answers, so that a message answered twice shows.
Octets former_answer(std::uint64_t sequence) {
  return Octets(request_of(sequence).size(), static_cast<std::uint8_t>(0xf0 + sequence % 8));
}

class TakeOver : public testing::Test {
 protected:
  /// The channel as it is when `consumed` messages are done and `left` tells of those after them.
  void leave(std::uint64_t consumed, const std::vector<Left>& left) {
    channel_.fill(0);
    // The lap before, done: its flags are all over the slots.
    for (std::uint64_t sequence = consumed - kDepth; sequence != consumed; ++sequence) {
      channel_.post(sequence, request_of(sequence));
      channel_.answer(sequence, former_answer(sequence));
    }
    for (std::uint64_t i = 0; i < left.size(); ++i) {
      channel_.post(consumed + i, request_of(consumed + i));
      if (left[i] != Left::unanswered) channel_.answer(consumed + i, former_answer(consumed + i));
      if (left[i] == Left::half_answered) tear(consumed + i);
    }
  }

  /// Takes back one packet of the answer, another one for each message: packets may be published
  /// in any order.
  void tear(std::uint64_t sequence) {
    const Slot slot = channel_.channel().response(sequence);
    const auto size = static_cast<std::uint32_t>(request_of(sequence).size());
    const std::uint32_t count = size > kMaxPacketPayload ? 1 : packets_for(size);
    Packet* const packet = slot.packets + sequence % count;
    Packet torn = load_packet(packet);
    --torn.flag;
    store_packet(packet, torn);
  }

  void expect_taken_over(std::uint64_t consumed, const std::vector<Left>& left) {
    Staging staging{};
    leave(consumed, left);
    EXPECT_EQ(take_over(channel_.channel(), consumed, Reverse{}, staging), consumed + left.size());
    for (std::uint64_t i = 0; i < left.size(); ++i) {
      const auto expected = left[i] == Left::answered
                                ? former_answer(consumed + i)
                                : expected_response("reverse", request_of(consumed + i));
      EXPECT_EQ(channel_.response(consumed + i), expected) << "message " << i;
    }
  }

  /// All mixtures of `count` messages.
  static std::vector<std::vector<Left>> mixtures(std::size_t count) {
    std::vector<std::vector<Left>> all{{}};
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::vector<Left>> longer;
      for (const auto& mixture : all) {
        for (const Left last : {Left::unanswered, Left::half_answered, Left::answered}) {
          longer.push_back(mixture);
          longer.back().push_back(last);
        }
      }
      all = std::move(longer);
    }
    return all;
  }

  TestChannel<HostRunner> channel_{kDepth, kMaxLength};
};

TEST_F(TakeOver, EveryMixtureOfAnsweredHalfAnsweredAndUnanswered) {
  const std::uint64_t wrap = std::uint64_t{0xffff'ffff} * kDepth;
  // At the start of a lap and inside one; where the flags of a channel wrap around.
  for (const std::uint64_t consumed :
       {std::uint64_t{400}, std::uint64_t{403}, wrap - 2, wrap + 1}) {
    for (std::size_t posted = 0; posted <= kDepth; ++posted) {
      for (const auto& mixture : mixtures(posted)) expect_taken_over(consumed, mixture);
    }
  }
}

TEST_F(TakeOver, AFreshChannel) {
  Staging staging{};
  EXPECT_EQ(take_over(channel_.channel(), 0, Reverse{}, staging), 0U);
  channel_.post(0, request_of(0));
  EXPECT_EQ(take_over(channel_.channel(), 0, Reverse{}, staging), 1U);
  EXPECT_EQ(channel_.response(0), expected_response("reverse", request_of(0)));
}

TEST_F(TakeOver, AMessageThatIsBeingPostedIsLeftToTheLoop) {
  leave(400, {Left::unanswered, Left::unanswered, Left::unanswered});
  Packet* const packets = channel_.channel().request(402).packets;
  Packet torn = load_packet(packets);
  --torn.flag;
  store_packet(packets, torn);
  Staging staging{};
  EXPECT_EQ(take_over(channel_.channel(), 400, Reverse{}, staging), 402U);
  EXPECT_FALSE(channel_.response(402));
}

TEST_F(TakeOver, ARefusedRequestIsAnsweredOnce) {
  leave(400, {});
  channel_.post_header(400, kMaxLength + 1);
  Staging staging{};
  EXPECT_EQ(take_over(channel_.channel(), 400, Reverse{}, staging), 401U);
  const Packet header = load_packet(channel_.channel().response(400).packets);
  EXPECT_EQ(header.data[1], static_cast<std::uint32_t>(Status::bad_length));
  const auto before = channel_.bytes();
  EXPECT_EQ(take_over(channel_.channel(), 400, Reverse{}, staging), 401U);
  EXPECT_EQ(channel_.bytes(), before);
}

// The count of consumed messages is the server's word: a wrong one does no harm.
TEST_F(TakeOver, AnAbsurdCountEndsWithinALap) {
  Staging staging{};
  leave(400, {Left::unanswered});
  for (const std::uint64_t consumed : {~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    const auto next = take_over(channel_.channel(), consumed, Reverse{}, staging);
    EXPECT_LE(next - consumed, kDepth);
  }
}

TEST(IsComplete, NeedsEveryPacket) {
  for (const std::uint32_t length : {0U, 12U, 100U, 372U}) {
    const TestChannel<HostRunner> empty(kDepth, kMaxLength);
    TestChannel<HostRunner> channel(kDepth, kMaxLength);
    const auto flag = channel.layout().flag_of(1);
    EXPECT_FALSE(is_complete(empty.channel().request(1), flag, channel.layout()));
    channel.post(1, random_octets(length));
    const Slot slot = channel.channel().request(1);
    EXPECT_TRUE(is_complete(slot, flag, channel.layout()));
    EXPECT_FALSE(is_complete(slot, flag + 1, channel.layout()));
    for (std::uint32_t index = 0; index < packets_for(length); ++index) {
      const Packet whole = load_packet(slot.packets + index);
      Packet torn = whole;
      ++torn.flag;
      store_packet(slot.packets + index, torn);
      EXPECT_FALSE(is_complete(slot, flag, channel.layout())) << index << " of " << length;
      store_packet(slot.packets + index, whole);
    }
  }
}

TEST(IsComplete, ALongMessageIsThereWithItsHeader) {
  TestChannel<HostRunner> channel(kDepth, kMaxLength);
  const auto flag = channel.layout().flag_of(1);
  const Slot slot = channel.channel().request(1);
  for (const std::uint32_t length : {373U, kMaxLength, kMaxLength + 1, 0xffff'ffffU}) {
    channel.post_header(1, length);
    EXPECT_TRUE(is_complete(slot, flag, channel.layout()));
    EXPECT_FALSE(is_complete(slot, flag - 1, channel.layout()));
  }
}

}  // namespace
}  // namespace offload::kernels::test
