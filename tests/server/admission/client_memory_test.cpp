#include "apps/server/admission/client_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "apps/server/admission/client_limits.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::server {
namespace {

constexpr std::uint64_t kBudget = 64 << 20;

TEST(ClientMemory, OneThreadMayHaveItsShareAndThePool) {
  ClientMemory all(kBudget, 4);
  ThreadMemory one(all);
  EXPECT_TRUE(one.set_held(all.share() + kBudget / 2 - all.step()));
  EXPECT_FALSE(one.set_held(all.share() + kBudget / 2 + 1));
}

TEST(ClientMemory, AllOfThePoolIsLent) {
  ClientMemory all(kBudget, 2);
  EXPECT_EQ(all.step(), kBudget / 32 / 2);
  EXPECT_TRUE(all.borrow(kBudget / 2)) << "the last byte";
  EXPECT_FALSE(all.borrow(1));
  all.give_back(kBudget / 2);
  EXPECT_TRUE(all.borrow(1));
}

TEST(ClientMemory, GivesBackAllButTwoSteps) {
  ClientMemory all(kBudget, 2);
  ThreadMemory one(all);
  ASSERT_TRUE(one.set_held(all.share() + 8 * all.step()));
  ASSERT_EQ(one.allowed(), all.share() + 8 * all.step());
  ASSERT_TRUE(one.set_held(all.share() + 4 * all.step()));
  EXPECT_EQ(one.allowed(), all.share() + 6 * all.step());
  ASSERT_TRUE(one.set_held(all.share()));
  EXPECT_EQ(one.allowed(), all.share() + 2 * all.step());
  ASSERT_TRUE(one.set_held(0));
  EXPECT_EQ(one.allowed(), all.share());
}

TEST(ClientMemory, NobodyUsesUpTheShareOfAnother) {
  ClientMemory all(kBudget, 4);
  ThreadMemory greedy(all);
  ThreadMemory other(all);
  EXPECT_FALSE(greedy.set_held(kBudget));
  EXPECT_TRUE(other.set_held(all.share()));
  EXPECT_FALSE(other.set_held(all.share() + 1));
}

TEST(ClientMemory, WhatIsFreeAgainOthersMayHave) {
  ClientMemory all(kBudget, 2);
  ThreadMemory one(all);
  ThreadMemory other(all);
  EXPECT_TRUE(one.set_held(kBudget / 2));
  EXPECT_FALSE(other.set_held(kBudget / 4 * 3));
  EXPECT_TRUE(one.set_held(0));
  EXPECT_TRUE(other.set_held(kBudget / 4 * 3 - 2 * all.step()));
  {
    ThreadMemory third(all);
    (void)third.set_held(kBudget);
  }
  (void)other.set_held(0);
  EXPECT_TRUE(one.set_held(kBudget / 4 * 3 - 2 * all.step()));  // what `third` had is back
}

// Small changes do not go to the pool each time.
TEST(ClientMemory, KeepsTwoSteps) {
  ClientMemory all(kBudget, 2);
  ThreadMemory one(all);
  ASSERT_TRUE(one.set_held(all.share() + all.step()));
  const auto allowed = one.allowed();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(one.set_held(all.share() - all.step()));
    EXPECT_EQ(one.allowed(), allowed);
    EXPECT_TRUE(one.set_held(all.share() + all.step()));
  }
}

TEST(ClientMemory, ManyThreadsNeverHaveMoreThanThereIs) {
  constexpr std::uint64_t kThreads = 4;
  ClientMemory all(kBudget, kThreads);
  std::vector<std::uint64_t> most(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        ThreadMemory mine(all);
        for (std::uint64_t held = 0; held < 2000; ++held) {
          (void)mine.set_held(held * 7919 * (i + 1) % kBudget);
          most[i] = std::max(most[i], mine.allowed());
        }
      });
    }
  }
  for (const auto allowed : most) EXPECT_LE(allowed, all.share() + kBudget / 2);
  ThreadMemory last(all);
  EXPECT_TRUE(last.set_held(all.share() + kBudget / 2 - all.step()));  // all was given back
}

TEST(ClientMemory, ASuitableBudgetIsAPartOfTheMachine) {
  EXPECT_GT(suitable_client_memory(), std::uint64_t{1} << 20);
  EXPECT_LT(suitable_client_memory(), std::uint64_t{1} << 50);
}

TEST(ClientMemory, ASuitableBudgetIsAPartOfTheLowestLimit) {
  const support::TempDir machine;
  std::filesystem::create_directories(machine.file("proc/self"));
  std::filesystem::create_directories(machine.file("groups/a"));
  machine.write("proc/self/mountinfo", "35 25 0:31 / /groups rw shared:9 - cgroup2 cgroup2 rw\n");
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.write("groups/a/memory.max", "4194304\n");
  EXPECT_EQ(suitable_client_memory(machine.path()), 1U << 20);
}

}  // namespace
}  // namespace offload::server
