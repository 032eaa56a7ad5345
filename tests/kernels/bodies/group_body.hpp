#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/module/reduce.hpp"
#include "kernels/serve.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"

/// Tests the collective operations of a group.
namespace offload::kernels::test {

inline constexpr std::uint32_t kMostLanes = 128;

/// The values that one lane saw.
struct LaneFacts {
  std::uint32_t size;
  std::uint32_t combined;
  std::uint32_t from_first;
  std::uint64_t wide_from_first;
  std::uint32_t sum_before;
  std::uint64_t sum;  ///< of values of 64 bits
  std::uint64_t any;  ///< bits that one of these has
  float least;        ///< of their negative halves
  bool all_of_true;
  bool all_of_false;
  bool all_but_the_last;
  std::uint32_t neighbour;  ///< what the next lane had written before a sync
  struct Tile {
    std::uint32_t size;
    std::uint32_t lane;
    std::uint32_t combined;  ///< of the lanes' values, once more for each tile before it
    std::uint32_t from_first;
    std::uint64_t sum;
  } tiles[6];  ///< of 1, 2, 4 ... 32 lanes
};

OFFLOAD_HOST_DEVICE inline std::uint64_t wide_of(std::uint32_t value) {
  return std::uint64_t{value} << 20;  // in both halves
}
OFFLOAD_HOST_DEVICE inline float least_of(std::uint32_t value) {
  return static_cast<float>(value) * -0.5F;
}

struct AskGroup {
  const std::uint32_t* values;
  std::uint32_t* board;
  LaneFacts* facts;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    const std::uint32_t lane = group.lane();
    LaneFacts& own = facts[lane];
    own.size = group.size();
    own.combined = group.combine_xor(values[lane]);
    own.from_first = group.from_first(values[lane]);
    own.wide_from_first = from_first_64(group, wide_of(values[lane]));
    own.sum_before = group.exclusive_sum(values[lane]);
    const std::uint64_t wide = wide_of(values[lane]);
    own.sum = reduce_sum(group, wide);
    own.any = reduce_or(group, wide);
    own.least = reduce_min(group, least_of(values[lane]));
    own.all_of_true = group.all(true);
    own.all_of_false = group.all(false);
    own.all_but_the_last = group.all(lane + 1 != group.size());
    board[lane] = values[lane];
    group.sync();
    own.neighbour = board[(lane + 1) % group.size()];
    for (std::uint32_t i = 0; i < 6; ++i) {
      const auto tile = group.tile(1U << i < group.size() ? 1U << i : group.size());
      LaneFacts::Tile& facts_of_tile = own.tiles[i];
      facts_of_tile.size = tile.size();
      facts_of_tile.lane = tile.lane();
      facts_of_tile.combined = 0;
      // As in a batch, no two tiles of a warp run this loop equally often.
      for (std::uint32_t round = 0; round <= lane / tile.size(); ++round) {
        facts_of_tile.combined += tile.combine_xor(values[lane]);
      }
      facts_of_tile.from_first = tile.from_first(values[lane]);
      facts_of_tile.sum = reduce_sum(tile, wide_of(values[lane]));
      group.sync();
    }
  }
};

template <class Runner>
class Group : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Group);

TYPED_TEST_P(Group, LanesAgree) {
  typename TypeParam::Memory memory(kMostLanes * (2 * sizeof(std::uint32_t) + sizeof(LaneFacts)));
  auto* const values = reinterpret_cast<std::uint32_t*>(memory.data());
  auto* const facts = reinterpret_cast<LaneFacts*>(values + 2 * kMostLanes);
  for (std::uint32_t lane = 0; lane < kMostLanes; ++lane) values[lane] = 0x9e37'79b9U * (lane + 3);
  TypeParam::run(AskGroup{values, values + kMostLanes, facts});

  const std::uint32_t size = facts[0].size;
  ASSERT_TRUE(size == 1 || (size % 32 == 0 && size <= kMostLanes)) << size;
  std::uint32_t combined = 0;
  std::uint64_t whole_sum = 0;
  std::uint64_t any = 0;
  float least = 0;
  for (std::uint32_t lane = 0; lane < size; ++lane) {
    combined ^= values[lane];
    whole_sum += wide_of(values[lane]);
    any |= wide_of(values[lane]);
    least = std::min(least, least_of(values[lane]));
  }
  std::uint32_t sum = 0;
  for (std::uint32_t lane = 0; lane < size; ++lane) {
    EXPECT_EQ(facts[lane].size, size);
    EXPECT_EQ(facts[lane].sum_before, sum);
    sum += values[lane];
    EXPECT_EQ(facts[lane].combined, combined);
    EXPECT_EQ(facts[lane].from_first, values[0]);
    EXPECT_EQ(facts[lane].wide_from_first, wide_of(values[0]));
    EXPECT_EQ(facts[lane].sum, whole_sum);
    EXPECT_EQ(facts[lane].any, any);
    EXPECT_EQ(facts[lane].least, least);
    EXPECT_TRUE(facts[lane].all_of_true);
    EXPECT_FALSE(facts[lane].all_of_false);
    EXPECT_FALSE(facts[lane].all_but_the_last);
    EXPECT_EQ(facts[lane].neighbour, values[(lane + 1) % size]);
    for (std::uint32_t i = 0; i < 6; ++i) {
      const LaneFacts::Tile& tile = facts[lane].tiles[i];
      EXPECT_EQ(tile.size, std::min(1U << i, size));
      EXPECT_EQ(tile.lane, lane % tile.size);
      std::uint32_t in_tile = 0;
      std::uint64_t sum_of_tile = 0;
      for (std::uint32_t other = 0; other < tile.size; ++other) {
        in_tile ^= values[lane - tile.lane + other];
        sum_of_tile += wide_of(values[lane - tile.lane + other]);
      }
      EXPECT_EQ(tile.from_first, values[lane - tile.lane]);
      EXPECT_EQ(tile.sum, sum_of_tile);
      EXPECT_EQ(tile.combined, in_tile * (lane / tile.size + 1)) << "tile of " << tile.size;
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(Group, LanesAgree);

}  // namespace offload::kernels::test
