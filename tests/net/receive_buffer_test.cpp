#include "net/receive_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::copy_of;

constexpr std::size_t kSize = 64 * 1024;

class ReceiveBufferTest : public testing::Test {
 protected:
  /// `expected`: of the frame that comes, if it is known.
  void receive(std::span<const std::byte> bytes, std::size_t expected = 0) {
    receive(buffer_, bytes, expected);
  }
  static void receive(ReceiveBuffer& buffer, std::span<const std::byte> bytes,
                      std::size_t expected) {
    while (!bytes.empty()) {
      const auto room = buffer.room(expected);
      ASSERT_FALSE(room.empty());
      const std::size_t count = std::min(room.size(), bytes.size());
      std::copy_n(bytes.begin(), count, room.begin());
      buffer.append(count);
      bytes = bytes.subspan(count);
    }
  }

  memory::BlockCache cache_{16 * 1024 * 1024};
  ReceiveBuffer buffer_{cache_, kSize};
};

TEST_F(ReceiveBufferTest, GivesBytesBackInOrder) {
  EXPECT_TRUE(buffer_.bytes().empty());
  receive(support::random_bytes(10, 1));
  receive(support::random_bytes(20, 2));
  ASSERT_EQ(buffer_.bytes().size(), 30U);
  EXPECT_EQ(copy_of(buffer_.bytes().first(10)), support::random_bytes(10, 1));
  buffer_.consume(10);
  EXPECT_EQ(copy_of(buffer_.bytes()), support::random_bytes(20, 2));
}

TEST_F(ReceiveBufferTest, RoomIsAllThatIsNotTaken) {
  EXPECT_EQ(buffer_.room(0).size(), kSize);
  receive(support::random_bytes(50'000, 1));
  EXPECT_EQ(buffer_.room(0).size(), kSize - 50'000);
  buffer_.consume(30'000);
  EXPECT_EQ(buffer_.room(0).size(), kSize - 20'000);
  const auto received = support::random_bytes(50'000, 1);
  EXPECT_EQ(copy_of(buffer_.bytes()), copy_of(std::span(received).last(20'000)));
  EXPECT_EQ(buffer_.consumed(), 30'000U);
}

TEST_F(ReceiveBufferTest, StaysInItsBlockWhileThatHasRoom) {
  receive(support::random_bytes(100, 1));
  const std::byte* const at = buffer_.bytes().data();
  EXPECT_EQ(buffer_.room(0).size(), kSize - 100);
  EXPECT_EQ(buffer_.bytes().data(), at);
  buffer_.consume(1);
  EXPECT_EQ(buffer_.room(0).size(), kSize - 99);
}

// Twice as much, or all of a frame that is at most four times as long.
TEST_F(ReceiveBufferTest, GrowsByWhatIsExpected) {
  struct Case {
    std::size_t expected;
    std::size_t room;
  };
  for (const Case& one : {Case{0, kSize}, Case{kSize, kSize}, Case{4 * kSize, 3 * kSize},
                          Case{4 * kSize + 4, kSize}}) {
    memory::BlockCache cache(0);  // which has no longer block
    ReceiveBuffer buffer(cache, kSize);
    ASSERT_EQ(buffer.room(one.expected).size(), kSize);
    buffer.append(kSize);
    EXPECT_EQ(buffer.room(one.expected).size(), one.room) << one.expected;
  }
}

TEST_F(ReceiveBufferTest, AStreamOfAnyLengthGoesThrough) {
  const Bytes stream = support::random_bytes(3'000'000, 1);
  Bytes taken;
  std::size_t received = 0;
  for (std::size_t turn = 0; taken.size() < stream.size(); ++turn) {
    const auto room = buffer_.room(turn % 3 == 0 ? 100'000 : 0);
    ASSERT_FALSE(room.empty());
    const std::size_t count =
        std::min({room.size(), stream.size() - received, 1 + turn * 7919 % 30'011});
    std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(received), count, room.begin());
    buffer_.append(count);
    received += count;
    const auto bytes = buffer_.bytes();
    const std::size_t take = std::min(bytes.size(), 1 + turn * 6007 % 40'009);
    taken.insert(taken.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
    buffer_.consume(take);
    if (turn % 2 == 0) buffer_.settle(turn % 4 == 0 ? 100'000 : 0);
  }
  EXPECT_TRUE(taken == stream);
  EXPECT_EQ(buffer_.consumed(), stream.size());
}

// A connection that is quiet holds no memory.
TEST_F(ReceiveBufferTest, HoldsNoMemoryWhileThereIsNothingInIt) {
  receive(support::random_bytes(10, 1));
  buffer_.consume(10);
  buffer_.settle(0);
  EXPECT_EQ(buffer_.held(), 0U);
  EXPECT_EQ(cache_.lent(), 0U);
  receive(support::random_bytes(5, 2));
  EXPECT_EQ(copy_of(buffer_.bytes()), support::random_bytes(5, 2));
}

TEST_F(ReceiveBufferTest, AFewBytesHoldAFew) {
  receive(support::random_bytes(1000, 1));
  buffer_.consume(987);
  buffer_.settle(1'000'000);
  const auto received = support::random_bytes(1000, 1);
  EXPECT_EQ(copy_of(buffer_.bytes()), copy_of(std::span(received).last(13)));
  EXPECT_LE(cache_.lent(), 64U);
  receive(support::random_bytes(100, 2));
  buffer_.settle(1'000'000);
  EXPECT_EQ(buffer_.bytes().size(), 113U);
  EXPECT_LE(cache_.lent(), 256U);
}

/// A number of received bytes, the number that stays, and the length of the frame that they begin.
struct Rest {
  std::size_t received;
  std::size_t rest;
  std::size_t expected;
  std::size_t held;  ///< after it has settled
  std::size_t room;  ///< for the next receive
};

// A short rest, up to 16 KiB, gets a block of its size, and the next receive a long one.
TEST_F(ReceiveBufferTest, ARestSettlesInABlockOfAboutItsSize) {
  for (const Rest& one : {
           Rest{20'000, 16'384, 0, 16'384, kSize - 16'384},
           Rest{20'000, 16'385, 0, kSize, kSize - 16'385},
           Rest{100'000, 16'385, 0, 114'688, 114'688 - 16'385},
           Rest{150'000, 70'000, 0, 163'840, 163'840 - 70'000},
           Rest{300'000, 16'385, 0, kSize, kSize - 16'385},
           Rest{300'000, 16'385, 20'000, 32'768, 32'768 - 16'385},
       }) {
    memory::BlockCache cache(0);  // which has no longer block
    ReceiveBuffer buffer(cache, kSize);
    const auto bytes = support::random_bytes(one.received, 1);
    receive(buffer, bytes, one.received);
    buffer.consume(one.received - one.rest);
    buffer.settle(one.expected);
    EXPECT_EQ(buffer.held(), one.held) << one.received << ' ' << one.rest;
    EXPECT_EQ(buffer.room(one.expected).size(), one.room) << one.received << ' ' << one.rest;
    EXPECT_TRUE(copy_of(buffer.bytes()) == copy_of(std::span(bytes).last(one.rest)));
  }
}

TEST_F(ReceiveBufferTest, AFewBytesAreNotMovedForAFewLess) {
  receive(support::random_bytes(100, 1));
  buffer_.settle(0);
  EXPECT_EQ(buffer_.held(), 128U);
  buffer_.consume(87);
  buffer_.settle(0);
  EXPECT_EQ(buffer_.held(), 128U);
}

// A client that announces a long frame and sends it in drops does not hold many times what came.
TEST_F(ReceiveBufferTest, ALongFrameHoldsAboutWhatCameOfIt) {
  constexpr std::size_t kFrame = 16 * 1024 * 1024 + 12;
  const Bytes frame = support::random_bytes(kFrame, 1);
  const std::byte* memory = nullptr;
  int moves = 0;
  for (std::size_t came = 0; came < kFrame;) {
    const std::size_t count = std::min<std::size_t>(10'000, kFrame - came);
    receive(std::span(frame).subspan(came, count), came < 4 ? 0 : kFrame);
    came += count;
    buffer_.settle(kFrame);
    EXPECT_LE(buffer_.held(), std::max<std::size_t>(2 * kSize, came * 5));
    if (came > kSize && std::exchange(memory, buffer_.bytes().data()) != buffer_.bytes().data()) {
      ++moves;
    }
  }
  EXPECT_TRUE(copy_of(buffer_.bytes()) == frame);
  EXPECT_LE(moves, 12);
  EXPECT_LE(buffer_.held(), kFrame + kFrame / 4);
}

TEST_F(ReceiveBufferTest, ClearingAndEndingGiveTheMemoryBack) {
  receive(support::random_bytes(10, 1));
  buffer_.clear();
  EXPECT_TRUE(buffer_.bytes().empty());
  buffer_.clear();
  EXPECT_EQ(cache_.lent(), 0U);
  {
    ReceiveBuffer other(cache_, kSize);
    EXPECT_EQ(other.room(0).size(), kSize);
  }
  EXPECT_EQ(cache_.lent(), 0U);
}

TEST(ReceiveBuffer, WithoutMemoryThereIsNoRoom) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends the program where so much memory is asked for";
#endif
  memory::BlockCache cache(0);
  ReceiveBuffer buffer(cache, std::size_t{1} << 61);
  EXPECT_TRUE(buffer.room(0).empty());
  EXPECT_TRUE(buffer.bytes().empty());
}

}  // namespace
}  // namespace offload::net
