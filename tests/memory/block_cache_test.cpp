#include "memory/block_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace offload::memory {
namespace {

TEST(BlockCache, BlocksHaveTheirSize) {
  BlockCache cache(1000, 1);
  EXPECT_EQ(cache.block_size(), 1000U);
  // The whole of one that was there and of one that is made now; a checker sees an overrun.
  const auto first = cache.take();
  const auto second = cache.take();
  std::memset(first.get(), 1, 1000);
  std::memset(second.get(), 2, 1000);
  EXPECT_EQ(first[999], std::byte{1});
}

TEST(BlockCache, WhatIsOutIsNotHandedOutAgain) {
  BlockCache cache(16, 2);
  std::vector<BlockCache::Block> out;
  std::set<const std::byte*> addresses;
  for (int i = 0; i < 10; ++i) {
    out.push_back(cache.take());
    ASSERT_NE(out.back(), nullptr);
    addresses.insert(out.back().get());
  }
  EXPECT_EQ(addresses.size(), 10U);
}

TEST(BlockCache, TheWarmestComesFirst) {
  BlockCache cache(16, 4);
  auto first = cache.take();
  auto second = cache.take();
  const auto* const warmer = first.get();
  const auto* const warm = second.get();
  cache.give_back(std::move(second));
  cache.give_back(std::move(first));
  EXPECT_EQ(cache.take().get(), warmer);
  EXPECT_EQ(cache.take().get(), warm);
}

TEST(BlockCache, KeepsNoMoreThanItWasTold) {
  BlockCache cache(16, 2);
  std::vector<BlockCache::Block> out;
  for (int i = 0; i < 3; ++i) out.push_back(cache.take());
  const std::set<const std::byte*> kept{out[0].get(), out[1].get()};
  for (auto& block : out) cache.give_back(std::move(block));
  const auto first = cache.take();
  const auto second = cache.take();
  EXPECT_EQ((std::set<const std::byte*>{first.get(), second.get()}), kept);
}

TEST(BlockCache, ThatKeepsNothingStillHandsOut) {
  BlockCache cache(16, 0);
  cache.give_back(cache.take());
  EXPECT_NE(cache.take(), nullptr);
}

}  // namespace
}  // namespace offload::memory
