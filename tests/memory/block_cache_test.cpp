#include "memory/block_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/operator_new.hpp"

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

TEST(BlockCache, BlocksHaveSizesOfAFewSteps) {
  BlockCache cache(0);
  for (const auto& [size, rounded] :
       {std::pair{0U, 64U}, std::pair{64U, 64U}, std::pair{65U, 128U}, std::pair{65536U, 65536U},
        std::pair{65537U, 81920U}, std::pair{81920U, 81920U}, std::pair{81921U, 98304U},
        std::pair{131072U, 131072U}, std::pair{1000000U, 1048576U},
        std::pair{16777228U, 20971520U}}) {
    EXPECT_EQ(cache.take(size).size(), rounded) << size;
  }
}

TEST(BlockCache, ABlockThatWasMovedFromIsEmpty) {
  BlockCache cache(0);
  EXPECT_EQ(MemoryBlock().size(), 0U);
  MemoryBlock first = cache.take(64);
  const MemoryBlock second(std::move(first));
  EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move): what is left is defined
  EXPECT_EQ(second.size(), 64U);
  MemoryBlock third = cache.take(128);
  first = std::move(third);
  EXPECT_EQ(third.size(), 0U);  // NOLINT(bugprone-use-after-move): what is left is defined
  EXPECT_EQ(first.size(), 128U);
}

/// Takes that number of blocks, gives all back, takes them again, and returns how many were
/// allocated again.
std::uint64_t allocated_again(BlockCache& cache, std::size_t size, std::size_t count) {
  std::vector<MemoryBlock> out(count);
  for (MemoryBlock& block : out) block = cache.take(size);
  for (MemoryBlock& block : out) cache.give_back(std::move(block));
  const std::uint64_t before = support::allocations.count;
  for (MemoryBlock& block : out) block = cache.take(size);
  const std::uint64_t allocated = support::allocations.count - before;
  for (MemoryBlock& block : out) cache.give_back(std::move(block));
  return allocated;
}

TEST(BlockCache, FourOfEachShortSizeAreReady) {
  if (!support::kOwnOperatorNew) GTEST_SKIP() << "the sanitizer has its own operator new";
  BlockCache cache(0);
  std::vector<MemoryBlock> out(5);
  for (std::size_t size = 64; size <= 8192; size *= 2) {
    const std::uint64_t before = support::allocations.count;
    for (int i = 0; i < 4; ++i) out[static_cast<std::size_t>(i)] = cache.take(size);
    EXPECT_EQ(support::allocations.count, before) << size;
    out[4] = cache.take(size);
    EXPECT_EQ(support::allocations.count, before + 1) << size;
  }
  const std::uint64_t before = support::allocations.count;
  out[0] = cache.take(8193);
  EXPECT_EQ(support::allocations.count, before + 1);
}

TEST(BlockCache, KeepsSixteenOfAShortSize) {
  if (!support::kOwnOperatorNew) GTEST_SKIP() << "the sanitizer has its own operator new";
  for (const std::size_t size : {64U, 8192U, 65536U}) {
    BlockCache cache(0);  // for long ones
    EXPECT_EQ(allocated_again(cache, size, 16), 0U) << size;
    EXPECT_EQ(allocated_again(cache, size, 17), 1U) << size;
  }
}

TEST(BlockCache, KeepsLongOnesUpToTheirNumberAndTheirBytes) {
  if (!support::kOwnOperatorNew) GTEST_SKIP() << "the sanitizer has its own operator new";
  BlockCache none(kMegabyte - 1);
  EXPECT_EQ(allocated_again(none, kMegabyte, 1), 1U);
  BlockCache three(3 * kMegabyte);
  EXPECT_EQ(allocated_again(three, 65536, 16), 0U) << "short ones do not count";
  EXPECT_EQ(allocated_again(three, kMegabyte, 3), 0U);
  EXPECT_EQ(allocated_again(three, kMegabyte, 5), 2U);
  EXPECT_EQ(allocated_again(three, kMegabyte, 3), 0U) << "the count is right again";
  BlockCache many(100 * kMegabyte);
  EXPECT_EQ(allocated_again(many, 100'000, 64), 0U);
  EXPECT_EQ(allocated_again(many, 100'000, 66), 2U);
}

TEST(BlockCache, ALongBlockIsFoundBehindShorterOnes) {
  BlockCache cache(100 * kMegabyte);
  std::vector<MemoryBlock> out(4);
  const std::size_t sizes[] = {100'000, 2 * kMegabyte, 200'000, 100'000};
  for (std::size_t i = 0; i < 4; ++i) out[i] = cache.take(sizes[i]);
  const auto* const memory = out[1].data();
  for (MemoryBlock& block : out) cache.give_back(std::move(block));
  const MemoryBlock found = cache.take(2 * kMegabyte);
  EXPECT_EQ(found.data(), memory);
  EXPECT_EQ(found.size(), 2 * kMegabyte);
  EXPECT_GE(cache.take(200'000).size(), 200'000U);
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
  EXPECT_NE(cache.take(kMegabyte / 4 - 40'000).data(), memory);
  block = cache.take(kMegabyte / 4);
  EXPECT_EQ(block.data(), memory);
  cache.give_back(std::move(block));
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
