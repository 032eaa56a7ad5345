#include "tasks/memory/buffer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "tasks/memory/inventory.hpp"
#include "tests/support/memory.hpp"

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
  for (int round = 0; round < 200'000; ++round) {
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
    ASSERT_NO_FATAL_FAILURE(expect_is(*buffer, model)) << "round " << round;
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

TEST_F(BufferTest, AReferenceThatWasGivenUpStaysCountedUntilItIsAdopted) {
  Buffer* const buffer = take().release();
  EXPECT_EQ(buffer->references(), 1U);
  EXPECT_EQ(inventory_.free_count(), 7U);
  EXPECT_EQ(BufferRef::share(*buffer)->references(), 2U);
  EXPECT_EQ(buffer->references(), 1U);
  BufferRef adopted = BufferRef::adopt(*buffer);
  EXPECT_EQ(buffer->references(), 1U);
  adopted.reset();
  EXPECT_EQ(inventory_.free_count(), 8U);
}

TEST_F(BufferTest, AssigningLetsGoOfTheFormer) {
  auto first = take();
  first = take();
  EXPECT_EQ(inventory_.free_count(), 7U);
  first = {};
  EXPECT_EQ(inventory_.free_count(), 8U);
}

}  // namespace
}  // namespace offload::memory
