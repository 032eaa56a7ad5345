#include "memory/inventory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

class InventoryTest : public testing::Test {
 protected:
  InventoryTest() {
    region_.start();
    inventory_.start();
  }

  std::vector<std::byte> memory_{200};
  std::span<std::byte> front_ = std::span(memory_).first(100);
  std::span<std::byte> back_ = std::span(memory_).last(50);
  MemoryRegion region_{{"x"}, {borrow_range(front_), borrow_range(back_)}};
  BufferInventory inventory_{2};
};

TEST_F(InventoryTest, TakeIsForADestination) {
  const auto taken = inventory_.take(region_, back_.first(10));
  ASSERT_TRUE(taken.buffer);
  EXPECT_EQ(taken.buffer->dataroom().data(), back_.data());
  EXPECT_EQ(taken.buffer->data().size(), 0U);
  EXPECT_EQ(taken.buffer->tailroom().size(), 10U);
  EXPECT_EQ(taken.buffer->range(), 1U);
  EXPECT_EQ(inventory_.free_count(), 1U);
}

TEST_F(InventoryTest, TakeByDataIsForASource) {
  const auto taken = inventory_.take_by_data(region_, front_.subspan(7, 10));
  ASSERT_TRUE(taken.buffer);
  EXPECT_EQ(taken.buffer->data().data(), front_.data() + 7);
  EXPECT_EQ(taken.buffer->data().size(), 10U);
  EXPECT_EQ(taken.buffer->headroom().size() + taken.buffer->tailroom().size(), 0U);
}

TEST_F(InventoryTest, DuplicateIsABufferOfItsOwn) {
  const auto original = inventory_.take(region_, front_).buffer;
  ASSERT_TRUE(original->set_data(10, 20));
  const auto copy = inventory_.duplicate(*original).buffer;
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->headroom().size(), 10U);
  EXPECT_EQ(copy->data().data(), original->data().data());
  EXPECT_EQ(copy->data().size(), 20U);
  EXPECT_EQ(original->references(), 1U);
  ASSERT_TRUE(copy->trim(20));
  EXPECT_EQ(original->data().size(), 20U);
  const auto third = inventory_.duplicate(*original);
  EXPECT_FALSE(third.buffer);
  EXPECT_EQ(third.error, ErrorCode::empty);
}

TEST_F(InventoryTest, ADuplicateIsInNoList) {
  BufferInventory more(3);
  more.start();
  const auto head = more.take(region_, front_).buffer;
  auto tail = more.take(region_, back_).buffer;
  ASSERT_TRUE(head->append_chain(tail));
  const auto copy = more.duplicate(*head->next()).buffer;
  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->is_head());
  EXPECT_EQ(more.duplicate(*head).error, ErrorCode::empty);
}

TEST_F(InventoryTest, IsExhaustedAndRecovers) {
  auto first = inventory_.take(region_, front_).buffer;
  const auto second = inventory_.take(region_, front_).buffer;  // the same bytes: allowed
  EXPECT_EQ(inventory_.free_count(), 0U);
  const auto third = inventory_.take(region_, front_);
  EXPECT_FALSE(third.buffer);
  EXPECT_EQ(third.error, ErrorCode::empty);
  first.reset();
  EXPECT_TRUE(inventory_.take(region_, back_).buffer);
}

TEST_F(InventoryTest, WhatItCouldNotGiveHoldsNoRegion) {
  {
    const auto first = inventory_.take(region_, front_).buffer;
    const auto second = inventory_.take(region_, back_).buffer;
    EXPECT_EQ(inventory_.take(region_, front_).error, ErrorCode::empty);
    EXPECT_EQ(inventory_.take_by_data(region_, front_).error, ErrorCode::empty);
  }
  EXPECT_NO_THROW(region_.stop());
  region_.start();
}

TEST_F(InventoryTest, WhatIsNotInTheRegionIsRefused) {
  std::byte stranger{};
  for (const std::span<std::byte> memory :
       {std::span<std::byte>(&stranger, 1), std::span<std::byte>(front_.data(), 101),
        std::span<std::byte>(front_.data() + 99, 2), std::span<std::byte>(memory_),
        std::span<std::byte>(front_.data(), kMost), std::span<std::byte>(front_.data() + 1, kMost),
        front_.first(0), std::span<std::byte>()}) {
    for (const auto& taken :
         {inventory_.take(region_, memory), inventory_.take_by_data(region_, memory)}) {
      EXPECT_FALSE(taken.buffer);
      EXPECT_EQ(taken.error, ErrorCode::invalid_value);
    }
  }
  EXPECT_EQ(inventory_.free_count(), 2U);
  EXPECT_EQ(region_.users(), 0U);
}

TEST_F(InventoryTest, GivesNothingOfARegionThatIsStopped) {
  region_.stop();
  EXPECT_EQ(inventory_.take(region_, front_).error, ErrorCode::bad_state);
  EXPECT_FALSE(inventory_.take_by_data(region_, front_).buffer);
}

TEST_F(InventoryTest, GivesNothingWhileStopped) {
  BufferInventory other(1);
  const auto buffer = inventory_.take(region_, front_).buffer;
  EXPECT_EQ(other.take(region_, front_).error, ErrorCode::bad_state);
  EXPECT_EQ(other.take_by_data(region_, front_).error, ErrorCode::bad_state);
  EXPECT_EQ(other.duplicate(*buffer).error, ErrorCode::bad_state);
  other.start();
  EXPECT_TRUE(other.take(region_, front_).buffer);
}

TEST_F(InventoryTest, CallsInTheWrongStateAreRefused) {
  const auto again = thrown_by([&] { inventory_.start(); });
  EXPECT_EQ(again.code(), ErrorCode::bad_state);
  EXPECT_STREQ(again.what(), "buffer inventory is started: cannot start");
  inventory_.stop();
  EXPECT_FALSE(inventory_.started());
  const auto stopped = thrown_by([&] { inventory_.stop(); });
  EXPECT_EQ(stopped.code(), ErrorCode::bad_state);
  EXPECT_STREQ(stopped.what(), "buffer inventory is stopped: cannot stop");
  inventory_.start();
  EXPECT_TRUE(inventory_.take(region_, front_).buffer);
}

TEST_F(InventoryTest, NeitherItNorTheRegionStopsWithBuffersOut) {
  auto buffer = inventory_.take(region_, front_).buffer;
  const auto error = thrown_by([&] { inventory_.stop(); });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
  EXPECT_STREQ(error.what(), "buffer inventory cannot stop: 1 of 2 buffers are in use");
  EXPECT_TRUE(inventory_.started());
  EXPECT_EQ(code_of([&] { region_.stop(); }), ErrorCode::in_use);
  buffer.reset();
  inventory_.stop();
  region_.stop();
}

TEST_F(InventoryTest, ServesAnyNumberOfRegions) {
  std::vector<std::byte> memory(10);
  MemoryRegion other({"y"}, {borrow_range(memory)});
  other.start();
  auto here = inventory_.take(region_, front_).buffer;
  auto there = inventory_.take(other, memory).buffer;
  ASSERT_TRUE(here && there);
  EXPECT_EQ(&there->region(), &other);
  ASSERT_TRUE(here->append_chain(there));
  EXPECT_EQ(code_of([&] { other.stop(); }), ErrorCode::in_use);
  here.reset();
  other.stop();
}

TEST(BufferInventory, OfNoneOrOfTooMany) {
  EXPECT_EQ(code_of([] { BufferInventory{0}; }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([] { BufferInventory{kMost}; }), ErrorCode::no_memory);
}

// Runs in a process whose leaks are not checked, as it leaks on purpose.
TEST(BufferInventory, ThatEndsFirstLeavesItsBuffersToTheirHolders) {
  support::ChildProcess child([](int) {
    const support::LogCapture log;
    std::vector<std::byte> memory(10);
    MemoryRegion region({"x"}, {borrow_range(memory)});
    region.start();
    BufferRef kept;
    {
      BufferInventory inventory(3);
      inventory.start();
      kept = inventory.take(region, memory).buffer;
    }
    if (!log.has("error: buffer inventory ends with 1 of 3 buffers in use")) return 1;
    if (!kept->append(10) || kept->data().data() != memory.data()) return 2;
    kept.reset();
    return region.users() == 1 ? 0 : 3;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace offload::memory
