#include "net/receive_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::copy_of;

constexpr std::size_t kSize = 64;

class ReceiveBufferTest : public testing::Test {
 protected:
  void receive(const Bytes& bytes) {
    const auto room = buffer_.room();
    ASSERT_GE(room.size(), bytes.size());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    buffer_.append(bytes.size());
  }

  memory::BlockCache cache_{kSize, 1};
  ReceiveBuffer buffer_{cache_};
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
  EXPECT_EQ(buffer_.room().size(), kSize);
  receive(support::random_bytes(50, 1));
  EXPECT_EQ(buffer_.room().size(), kSize - 50);
  buffer_.consume(40);
  EXPECT_EQ(buffer_.room().size(), kSize - 10);
  const auto received = support::random_bytes(50, 1);
  EXPECT_EQ(copy_of(buffer_.bytes()), copy_of(std::span(received).last(10)));
}

TEST_F(ReceiveBufferTest, AStreamOfAnyLengthGoesThrough) {
  const Bytes stream = support::random_bytes(10'000, 1);
  Bytes taken;
  std::size_t received = 0;
  for (std::size_t turn = 0; taken.size() < stream.size(); ++turn) {
    const auto room = buffer_.room();
    const std::size_t count =
        std::min({room.size(), stream.size() - received, 1 + turn * 7 % kSize});
    std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(received), count, room.begin());
    buffer_.append(count);
    received += count;
    const auto bytes = buffer_.bytes();
    const std::size_t take = std::min(bytes.size(), 1 + turn * 5 % kSize);
    taken.insert(taken.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
    buffer_.consume(take);
  }
  EXPECT_EQ(taken, stream);
}

// A connection that is quiet holds no memory.
TEST_F(ReceiveBufferTest, BorrowsItsMemoryOnlyWhileThereIsSomethingInIt) {
  receive(support::random_bytes(10, 1));
  const auto* const memory = buffer_.bytes().data();
  buffer_.consume(9);
  buffer_.release_if_empty();
  EXPECT_EQ(buffer_.bytes().size(), 1U);
  buffer_.consume(1);
  buffer_.release_if_empty();
  EXPECT_EQ(cache_.take().get(), memory);
  receive(support::random_bytes(5, 2));
  EXPECT_EQ(copy_of(buffer_.bytes()), support::random_bytes(5, 2));
}

TEST_F(ReceiveBufferTest, ClearingAndEndingGiveTheMemoryBack) {
  receive(support::random_bytes(10, 1));
  const auto* const memory = buffer_.bytes().data();
  buffer_.clear();
  EXPECT_TRUE(buffer_.bytes().empty());
  buffer_.clear();
  {
    ReceiveBuffer other(cache_);
    EXPECT_EQ(other.room().data(), memory);
  }
  EXPECT_EQ(cache_.take().get(), memory);
}

}  // namespace
}  // namespace offload::net
