#include "memory/block_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <set>

namespace offload::memory {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(BlockCache, BlocksHaveTheirSizeAndNotMuchMore) {
  BlockCache cache(0);
  for (const std::size_t size : {1U, 64U, 65U, 1000U, 65536U, 65537U, 1000000U, 16777228U}) {
    const MemoryBlock block = cache.take(size);
    ASSERT_TRUE(block);
    EXPECT_GE(block.size(), size);
    EXPECT_LE(block.size(), size <= 65536 ? std::max<std::size_t>(2 * size, 64) : size + size / 4);
    std::memset(block.data(), 1, block.size());  // a checker sees an overrun
  }
}

TEST(BlockCache, WhatIsOutIsNotHandedOutAgain) {
  BlockCache cache(kMegabyte);
  std::vector<MemoryBlock> out;
  std::set<const std::byte*> addresses;
  for (int i = 0; i < 40; ++i) {
    out.push_back(cache.take(i % 2 == 0 ? 100 : 100'000));
    addresses.insert(out.back().data());
  }
  EXPECT_EQ(addresses.size(), 40U);
}

TEST(BlockCache, TheWarmestComesFirst) {
  BlockCache cache(kMegabyte);
  for (const std::size_t size : {16'000U, 100'000U}) {
    auto first = cache.take(size);
    auto second = cache.take(size);
    const auto* const warmer = first.data();
    const auto* const warm = second.data();
    cache.give_back(std::move(second));
    cache.give_back(std::move(first));
    const auto again = cache.take(size);
    EXPECT_EQ(again.data(), warmer);
    EXPECT_EQ(cache.take(size).data(), warm);
  }
}

TEST(BlockCache, CountsWhatIsOut) {
  BlockCache cache(kMegabyte);
  EXPECT_EQ(cache.lent(), 0U);
  auto one = cache.take(1000);
  auto other = cache.take(100'000);
  EXPECT_EQ(cache.lent(), one.size() + other.size());
  cache.give_back(std::move(one));
  EXPECT_EQ(cache.lent(), other.size());
  cache.give_back(std::move(other));
  cache.give_back({});
  EXPECT_EQ(cache.lent(), 0U);
}

TEST(BlockCache, ALongBlockThatIsFreeServesForLessButNotForLittle) {
  BlockCache cache(100 * kMegabyte);
  MemoryBlock block = cache.take(16 * kMegabyte);
  const auto* const memory = block.data();
  cache.give_back(std::move(block));
  EXPECT_NE(cache.take(kMegabyte / 8).data(), memory);
  EXPECT_EQ(cache.take(2 * kMegabyte).data(), memory);
}

TEST(BlockCache, KeepsNoMoreLongBlocksThanItWasTold) {
  BlockCache cache(3 * kMegabyte);
  std::vector<MemoryBlock> out;
  for (int i = 0; i < 5; ++i) out.push_back(cache.take(kMegabyte));
  const std::set<const std::byte*> kept{out[0].data(), out[1].data(), out[2].data()};
  for (auto& block : out) cache.give_back(std::move(block));
  std::set<const std::byte*> again;
  for (auto& block : out) again.insert((block = cache.take(kMegabyte)).data());
  for (const auto* const memory : kept) EXPECT_TRUE(again.contains(memory));
}

// Memory that the cache freed would be that of `other`.
TEST(BlockCache, KeepsABlockHoweverOftenItWasOut) {
  BlockCache cache(kMegabyte);
  for (const std::size_t size : {16'000U, 600'000U}) {
    MemoryBlock block = cache.take(size);
    const auto* const memory = block.data();
    for (int i = 0; i < 100; ++i) {
      const std::size_t bytes = block.size();
      cache.give_back(std::move(block));
      const auto other = std::make_unique_for_overwrite<std::byte[]>(bytes);
      block = cache.take(size);
      ASSERT_EQ(block.data(), memory) << i;
      ASSERT_NE(other.get(), memory);
    }
  }
}

TEST(BlockCache, WhereThereIsNoMemoryThereIsNoBlock) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends the program where so much memory is asked for";
#endif
  BlockCache cache(0);
  EXPECT_FALSE(cache.take(std::numeric_limits<std::size_t>::max() / 4));
  EXPECT_EQ(cache.lent(), 0U);
}

}  // namespace
}  // namespace offload::memory
