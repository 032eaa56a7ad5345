#include "memory/buffer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/inventory.hpp"
#include "tests/memory/common.hpp"

namespace offload::memory {
namespace {

static_assert(!std::is_copy_constructible_v<Buffer>);
static_assert(std::is_nothrow_copy_constructible_v<BufferRef>);
static_assert(std::is_nothrow_move_constructible_v<BufferRef>);

constexpr std::size_t kLength = 100;

class BufferTest : public testing::Test {
 protected:
  BufferTest() {
    region_.start();
    inventory_.start();
  }

  BufferRef take(std::size_t number = 0) {
    return inventory_.take(region_, memory().subspan(number * kLength, kLength)).buffer;
  }
  std::span<std::byte> memory() { return memory_; }

  std::vector<std::byte> memory_{8 * kLength};
  MemoryRegion region_{{"x"}, {borrow_range(memory_)}};
  BufferInventory inventory_{8};
};

/// The lengths of headroom, data and tailroom.
struct Lengths {
  std::size_t head;
  std::size_t data;
  std::size_t tail;
  bool operator==(const Lengths&) const = default;
};

Lengths lengths_of(const Buffer& buffer) {
  return {buffer.headroom().size(), buffer.data().size(), buffer.tailroom().size()};
}

/// The three follow each other and fill the dataroom.
void expect_is(const Buffer& buffer, const Lengths& lengths) {
  ASSERT_EQ(lengths_of(buffer), lengths);
  ASSERT_EQ(buffer.headroom().data(), buffer.dataroom().data());
  ASSERT_EQ(buffer.data().data(), buffer.dataroom().data() + lengths.head);
  ASSERT_EQ(buffer.tailroom().data(), buffer.data().data() + lengths.data);
}

TEST_F(BufferTest, SaysWhatItDescribes) {
  const auto buffer = take(2);
  EXPECT_EQ(&buffer->region(), &region_);
  EXPECT_EQ(buffer->range(), 0U);
  EXPECT_EQ(buffer->dataroom().data(), memory_.data() + 2 * kLength);
  EXPECT_EQ(buffer->references(), 1U);
  expect_is(*buffer, {0, 0, kLength});
}

TEST_F(BufferTest, SetData) {
  const auto buffer = take();
  EXPECT_TRUE(buffer->set_data(10, 20));
  expect_is(*buffer, {10, 20, 70});
  EXPECT_TRUE(buffer->set_data(kLength, 0));
  expect_is(*buffer, {kLength, 0, 0});
  EXPECT_TRUE(buffer->set_data(0, kLength));
  expect_is(*buffer, {0, kLength, 0});
  for (const auto& [offset, length] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 101}, {101, 0}, {100, 1}, {1, kMost}, {kMost, 1}, {kMost, kMost}}) {
    EXPECT_FALSE(buffer->set_data(offset, length)) << offset << ' ' << length;
    expect_is(*buffer, {0, kLength, 0});
  }
}

TEST_F(BufferTest, AppendTakesOffTheTailroom) {
  const auto buffer = take();
  EXPECT_TRUE(buffer->append(60));
  EXPECT_TRUE(buffer->append(0));
  expect_is(*buffer, {0, 60, 40});
  EXPECT_FALSE(buffer->append(41));
  EXPECT_FALSE(buffer->append(kMost));
  expect_is(*buffer, {0, 60, 40});
  EXPECT_TRUE(buffer->append(40));
  expect_is(*buffer, {0, 100, 0});
}

TEST_F(BufferTest, PrependTakesOffTheHeadroom) {
  const auto buffer = take();
  ASSERT_TRUE(buffer->set_data(30, 5));
  EXPECT_TRUE(buffer->prepend(10));
  expect_is(*buffer, {20, 15, 65});
  EXPECT_FALSE(buffer->prepend(21));
  EXPECT_FALSE(buffer->prepend(kMost));
  EXPECT_TRUE(buffer->prepend(20));
  expect_is(*buffer, {0, 35, 65});
}

TEST_F(BufferTest, ConsumeFrontAndTrimTakeOffTheData) {
  const auto buffer = take();
  ASSERT_TRUE(buffer->append(50));
  EXPECT_TRUE(buffer->consume_front(20));
  expect_is(*buffer, {20, 30, 50});
  EXPECT_TRUE(buffer->trim(10));
  expect_is(*buffer, {20, 20, 60});
  EXPECT_FALSE(buffer->consume_front(21));
  EXPECT_FALSE(buffer->trim(21));
  EXPECT_FALSE(buffer->consume_front(kMost));
  EXPECT_FALSE(buffer->trim(kMost));
  expect_is(*buffer, {20, 20, 60});
  EXPECT_TRUE(buffer->consume_front(20));
  expect_is(*buffer, {40, 0, 60});
  buffer->reset();
  expect_is(*buffer, {0, 0, 100});
}

TEST_F(BufferTest, AnySequenceOfOperationsDoesWhatTheModelDoes) {
  std::minstd_rand random(1);
  const auto buffer = take();
  Lengths model{0, 0, kLength};
  const auto move = [](std::size_t& from, std::size_t& to, std::size_t count) {
    if (count > from) return false;
    from -= count;
    to += count;
    return true;
  };
  for (int turn = 0; turn < 200'000; ++turn) {
    const std::size_t count = random() % 100 == 0 ? kMost - random() % 3 : random() % 40;
    switch (random() % 8) {
      case 0:
      case 1: ASSERT_EQ(buffer->append(count), move(model.tail, model.data, count)); break;
      case 2:
      case 3: ASSERT_EQ(buffer->prepend(count), move(model.head, model.data, count)); break;
      case 4: ASSERT_EQ(buffer->consume_front(count), move(model.data, model.head, count)); break;
      case 5: ASSERT_EQ(buffer->trim(count), move(model.data, model.tail, count)); break;
      case 6: {
        const std::size_t offset = random() % (kLength + 10);
        const bool fits = offset <= kLength && count <= kLength - offset;
        ASSERT_EQ(buffer->set_data(offset, count), fits);
        if (fits) model = {offset, count, kLength - offset - count};
        break;
      }
      default:
        if (random() % 20 != 0) break;
        buffer->reset();
        model = {0, 0, kLength};
    }
    ASSERT_NO_FATAL_FAILURE(expect_is(*buffer, model)) << "turn " << turn;
  }
}

TEST_F(BufferTest, ReferencesAreCounted) {
  auto first = take();
  Buffer* const buffer = first.get();
  {
    const BufferRef second = first;
    EXPECT_EQ(second.get(), buffer);
    EXPECT_EQ(buffer->references(), 2U);
    BufferRef third = std::move(first);
    EXPECT_EQ(buffer->references(), 2U);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what is left is defined
    third = second;       // itself, by another reference
    EXPECT_EQ(buffer->references(), 2U);
    first = std::move(third);
  }
  EXPECT_EQ(buffer->references(), 1U);
  EXPECT_EQ(inventory_.free_count(), 7U);
  first.reset();
  EXPECT_FALSE(first);
  EXPECT_EQ(inventory_.free_count(), 8U);
  first.reset();
  EXPECT_EQ(inventory_.free_count(), 8U);
}

TEST_F(BufferTest, AssigningLetsGoOfTheFormer) {
  auto first = take();
  first = take();
  EXPECT_EQ(inventory_.free_count(), 7U);
  first = {};
  EXPECT_EQ(inventory_.free_count(), 8U);
}

TEST_F(BufferTest, AChainIsItsBuffersInOrder) {
  const auto head = take(0);
  auto second = take(1);
  auto third = take(2);
  Buffer* const second_buffer = second.get();
  Buffer* const third_buffer = third.get();
  ASSERT_TRUE(head->append(1) && second->append(20) && third->append(3));
  EXPECT_EQ(head->element_count(), 1U);
  ASSERT_TRUE(head->append_chain(second));
  EXPECT_FALSE(second);
  ASSERT_TRUE(head->append_chain(third));
  EXPECT_EQ(head->next(), second_buffer);
  EXPECT_EQ(second_buffer->next(), third_buffer);
  EXPECT_EQ(third_buffer->next(), nullptr);
  EXPECT_TRUE(head->is_head());
  EXPECT_FALSE(second_buffer->is_head());
  EXPECT_EQ(head->element_count(), 3U);
  EXPECT_EQ(head->total_length(), 24U);
  EXPECT_EQ(second_buffer->total_length(), 23U);
  EXPECT_EQ(second_buffer->references(), 1U);
}

TEST_F(BufferTest, AChainFitsWhatTakesAsManyElements) {
  const auto head = take(0);
  EXPECT_FALSE(head->fits(0));
  EXPECT_TRUE(head->fits(1));
  for (std::size_t i = 1; i < 4; ++i) {
    auto more = take(i);
    ASSERT_TRUE(head->append_chain(more));
  }
  EXPECT_FALSE(head->fits(3));
  EXPECT_TRUE(head->fits(4));
  EXPECT_TRUE(head->fits(kMost));
}

TEST_F(BufferTest, ChainsOfManyAreJoined) {
  const auto head = take(0);
  auto other = take(1);
  auto last = take(2);
  ASSERT_TRUE(other->append_chain(last));
  ASSERT_TRUE(head->append_chain(other));
  EXPECT_EQ(head->element_count(), 3U);
}

TEST_F(BufferTest, WhatIsInAListIsNotLinkedOnceMore) {
  auto head = take(0);
  auto second = take(1);
  auto second_again = second;
  auto other = take(2);
  BufferRef nothing;
  EXPECT_FALSE(head->append_chain(nothing));
  EXPECT_FALSE(head->append_chain(head));
  auto head_again = head;
  EXPECT_FALSE(head->append_chain(head_again));
  ASSERT_TRUE(head->append_chain(second));
  EXPECT_FALSE(head->append_chain(second_again));   // it is in this list
  EXPECT_FALSE(other->append_chain(second_again));  // it is in another's
  EXPECT_FALSE(second_again->append_chain(other));  // to the middle of a list
  EXPECT_FALSE(second_again->append_chain(head));   // it would be a ring
  // What was refused still has its reference.
  EXPECT_TRUE(head_again && second_again && other);
  EXPECT_EQ(head->element_count(), 2U);
}

TEST_F(BufferTest, UnlinkCutsTheListInTwo) {
  const auto head = take(0);
  auto second = take(1);
  auto third = take(2);
  const Buffer* const second_buffer = second.get();
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  const auto rest = head->unlink(*second_buffer);
  ASSERT_EQ(rest.get(), second_buffer);
  EXPECT_TRUE(rest->is_head());
  EXPECT_EQ(rest->references(), 1U);
  EXPECT_EQ(rest->element_count(), 2U);
  EXPECT_EQ(head->element_count(), 1U);
}

TEST_F(BufferTest, UnlinkOfWhatDoesNotFollowIsNothing) {
  const auto head = take(0);
  auto second = take(1);
  const auto second_again = second;
  auto third = take(2);
  const Buffer* const third_buffer = third.get();
  const auto stranger = take(3);
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  EXPECT_FALSE(head->unlink(*head));
  EXPECT_FALSE(head->unlink(*stranger));
  EXPECT_FALSE(second_again->unlink(*third_buffer));  // it heads no list
  EXPECT_EQ(head->element_count(), 3U);
}

TEST_F(BufferTest, TheChainGoesWithItsHead) {
  auto head = take(0);
  for (std::size_t i = 1; i < 8; ++i) {
    auto more = take(i);
    ASSERT_TRUE(head->append_chain(more));
  }
  EXPECT_EQ(inventory_.free_count(), 0U);
  EXPECT_EQ(region_.users(), 8U);
  head.reset();
  EXPECT_EQ(inventory_.free_count(), 8U);
  EXPECT_EQ(region_.users(), 0U);
}

TEST_F(BufferTest, WhatIsStillHeldOfAChainStays) {
  auto head = take(0);
  auto second = take(1);
  const auto held = second;
  auto third = take(2);
  ASSERT_TRUE(head->append_chain(second) && head->append_chain(third));
  head.reset();
  EXPECT_EQ(inventory_.free_count(), 6U);
  EXPECT_TRUE(held->is_head());
  EXPECT_EQ(held->references(), 1U);
  EXPECT_EQ(held->element_count(), 2U);
}

TEST_F(BufferTest, ABufferThatComesBackHasNoTraceOfItsList) {
  auto head = take(0);
  auto second = take(1);
  ASSERT_TRUE(head->append_chain(second) && head->append(5));
  head.reset();
  for (std::size_t i = 0; i < 2; ++i) {
    head = take(i);
    EXPECT_EQ(head->next(), nullptr);
    EXPECT_TRUE(head->is_head());
    EXPECT_EQ(head->total_length(), 0U);
    second = head;
  }
}

}  // namespace
}  // namespace offload::memory
