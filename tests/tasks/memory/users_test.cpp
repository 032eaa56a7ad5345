#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "tasks/memory/inventory.hpp"
#include "tests/support/eventually.hpp"

namespace offload::memory {
namespace {

/// Each thread has a separate inventory; ThreadSanitizer checks the order.
constexpr std::size_t kThreads = 4;

TEST(RegionOfManyThreads, CountsTheBuffersOfAll) {
  std::vector<std::byte> memory(kThreads * 64);
  MemoryRegion region({"x"}, {borrow_range(memory)});
  region.start();
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      BufferInventory inventory(8);
      inventory.start();
      for (int round = 0; round < 10'000; ++round) {
        const auto own = std::span(memory).subspan(i * 64, 64);
        const auto buffer = inventory.take(region, own).buffer;
        const auto copy = inventory.duplicate(*buffer).buffer;
        copy->tailroom()[0] = std::byte{1};
      }
    });
  }
  threads.clear();
  EXPECT_EQ(region.users(), 0U);
  EXPECT_NO_THROW(region.stop());
}

// Between a buffer's last use there and stop here stands nothing but the count.
TEST(RegionOfManyThreads, WhatWasDoneWithABufferIsOverBeforeStopReturns) {
  std::vector<std::byte> memory(4096);
  MemoryRegion region({"x"}, {borrow_range(memory)});
  region.start();
  std::latch taken(1);
  const std::jthread writer([&] {
    BufferInventory inventory(1);
    inventory.start();
    const auto buffer = inventory.take(region, memory).buffer;
    taken.count_down();
    std::memset(buffer->tailroom().data(), 7, buffer->tailroom().size());
  });
  taken.wait();
  const auto stops = [&] {
    try {
      region.stop();
      return true;
    } catch (const core::Error&) {
      return false;
    }
  };
  ASSERT_TRUE(support::eventually(stops, [] { std::this_thread::yield(); }));
  EXPECT_EQ(memory, std::vector<std::byte>(4096, std::byte{7}));
}

}  // namespace
}  // namespace offload::memory
