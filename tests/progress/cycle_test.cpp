#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "progress/graph.hpp"

namespace offload::progress {
namespace {

using Cycle = std::vector<std::uint32_t>;

TEST(FindCycle, FindsNoneWhereThereIsNone) {
  EXPECT_EQ(find_cycle({}), Cycle{});
  EXPECT_EQ(find_cycle({{}}), Cycle{});
  EXPECT_EQ(find_cycle({{1, 2}, {3}, {3}, {}}), Cycle{});
  EXPECT_EQ(find_cycle({{1, 1}, {}}), Cycle{});
}

TEST(FindCycle, TellsItInTheOrderOfWaiting) {
  EXPECT_EQ(find_cycle({{0}}), Cycle{0});
  const Cycle three = find_cycle({{}, {2}, {3}, {1, 0, 4}, {}});
  ASSERT_EQ(three.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(three[(i + 1) % 3], three[i] % 3 + 1);
}

TEST(FindCycle, LeavesOutWhatOnlyWaitsForIt) {
  const Cycle cycle = find_cycle({{}, {2}, {1, 3}, {0}});
  ASSERT_EQ(cycle.size(), 2U);
  EXPECT_EQ(std::count(cycle.begin(), cycle.end(), 1), 1);
  EXPECT_EQ(std::count(cycle.begin(), cycle.end(), 2), 1);
}

// Edges from lower numbers to higher make no cycle; one more edge back along a path makes one.
TEST(FindCycleProperty, RandomGraphs) {
  std::minstd_rand random(7);
  for (int round = 0; round < 500; ++round) {
    const auto size = static_cast<std::uint32_t>(2 + random() % 20);
    Dependents dependents(size);
    for (std::uint32_t edges = 0; edges < 2 * size; ++edges) {
      const auto from = static_cast<std::uint32_t>(random() % (size - 1));
      const auto to = from + 1 + static_cast<std::uint32_t>(random() % (size - 1 - from));
      dependents[from].push_back(to);
    }
    EXPECT_EQ(find_cycle(dependents), Cycle{});

    std::uint32_t last = static_cast<std::uint32_t>(random() % size);
    const std::uint32_t first = last;
    while (!dependents[last].empty()) last = dependents[last][random() % dependents[last].size()];
    dependents[last].push_back(first);
    const Cycle cycle = find_cycle(dependents);
    ASSERT_FALSE(cycle.empty());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto& waiting = dependents[cycle[i]];
      EXPECT_NE(std::find(waiting.begin(), waiting.end(), cycle[(i + 1) % cycle.size()]),
                waiting.end());
    }
  }
}

}  // namespace
}  // namespace offload::progress
