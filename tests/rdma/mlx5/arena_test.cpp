#include "rdma/mlx5/arena.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/rdma/mlx5/page.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma::mlx5 {
namespace {

struct ArenaTest : testing::Test {
  std::vector<Page> pages = std::vector<Page>(4);
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(pages));
  Arena arena{bytes};
};

TEST_F(ArenaTest, PiecesAreAlignedZeroedAndApart) {
  std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
  auto* const record = static_cast<std::byte*>(arena.take(8, 8));
  auto* const other = static_cast<std::byte*>(arena.take(8, 8));
  auto* const ring = static_cast<std::byte*>(arena.take(5000, 4096));
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(record, bytes.data());
  EXPECT_EQ(other, record + 64);  // in a separate cache line
  EXPECT_EQ(ring, bytes.data() + 4096);
  EXPECT_EQ(std::count(ring, ring + 5000, std::byte{}), 5000);
  EXPECT_EQ(std::count(record, record + 8, std::byte{}), 8);
}

TEST_F(ArenaTest, WhatIsNotThereIsNull) {
  EXPECT_NE(arena.take(3 * 4096, 4096), nullptr);
  EXPECT_EQ(arena.take(4097, 64), nullptr);
  EXPECT_EQ(arena.take(~std::size_t{0}, 64), nullptr);
  EXPECT_EQ(arena.take(64, std::size_t{1} << 62), nullptr);
  EXPECT_NE(arena.take(4096, 64), nullptr);
  EXPECT_EQ(arena.take(1, 1), nullptr);
}

TEST_F(ArenaTest, KnowsItsMemory) {
  EXPECT_TRUE(arena.has(bytes.data(), bytes.size()));
  EXPECT_TRUE(arena.has(bytes.data() + 64, 64));
  EXPECT_FALSE(arena.has(bytes.data() + 64, bytes.size()));
  EXPECT_FALSE(arena.has(bytes.data() + bytes.size(), 1));
  EXPECT_FALSE(arena.has(nullptr, 1));
  EXPECT_TRUE(arena.has(bytes.data() + bytes.size() - 1, 1));
  EXPECT_FALSE(arena.has(bytes.data() + bytes.size() - 1, 2));
  EXPECT_FALSE(arena.has(bytes.data(), bytes.size() + 1));
  EXPECT_FALSE(arena.has(bytes.data() + 1, ~std::size_t{0}));
  EXPECT_EQ(arena.begin(), bytes.data());
}

TEST(ArenaBytes, HaveRoomForAllPartsWhereverTheyAreAligned) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::uint32_t blocks : {16U, 64U, 4096U, 32768U}) {
    const std::size_t bytes = arena_bytes({blocks, blocks});
    EXPECT_EQ(bytes % page, 0U);
    // Rings and completions of both queues, each of whole pages.
    EXPECT_GE(bytes, rounded_up(blocks * std::size_t{64 + 64 + 16 + 64}, page) + 4 * page);
  }
  EXPECT_EQ(rounded_up(0, 64), 0U);
  EXPECT_EQ(rounded_up(1, 64), 64U);
  EXPECT_EQ(rounded_up(64, 64), 64U);
  EXPECT_EQ(rounded_up(65, 64), 128U);
}

TEST(ArenaBytes, AreNoneForSizesThatAreNone) {
  EXPECT_EQ(support::thrown_by([] { arena_bytes({.send_blocks = 48}); }).code(),
            core::ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::rdma::mlx5
