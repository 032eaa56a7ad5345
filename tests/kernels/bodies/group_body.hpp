#pragma once

#include <gtest/gtest.h>

#include "kernels/serve.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"

/// What the lanes of a group do together.
namespace offload::kernels::test {

inline constexpr std::uint32_t kMostLanes = 128;

/// What each lane saw.
struct LaneFacts {
  std::uint32_t size;
  std::uint32_t combined;
  std::uint32_t from_first;
  bool all_of_true;
  bool all_of_false;
  bool all_but_the_last;
  std::uint32_t neighbour;  ///< what the next lane had written before a sync
};

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
    own.all_of_true = group.all(true);
    own.all_of_false = group.all(false);
    own.all_but_the_last = group.all(lane + 1 != group.size());
    board[lane] = values[lane];
    group.sync();
    own.neighbour = board[(lane + 1) % group.size()];
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
  ASSERT_TRUE(size == 1 || size == 32 || size == kMostLanes) << size;
  std::uint32_t combined = 0;
  for (std::uint32_t lane = 0; lane < size; ++lane) combined ^= values[lane];
  for (std::uint32_t lane = 0; lane < size; ++lane) {
    EXPECT_EQ(facts[lane].size, size);
    EXPECT_EQ(facts[lane].combined, combined);
    EXPECT_EQ(facts[lane].from_first, values[0]);
    EXPECT_TRUE(facts[lane].all_of_true);
    EXPECT_FALSE(facts[lane].all_of_false);
    EXPECT_FALSE(facts[lane].all_but_the_last);
    EXPECT_EQ(facts[lane].neighbour, values[(lane + 1) % size]);
  }
}

REGISTER_TYPED_TEST_SUITE_P(Group, LanesAgree);

}  // namespace offload::kernels::test
