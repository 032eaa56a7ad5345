#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "core/cpu.hpp"
#include "tests/support/race.hpp"

namespace offload::core {
namespace {

// Dekker's entry protocol: each thread writes its own word and then reads the other's. Without a
// store-load fence x86 and Arm let both read the value of before, and do within a million rounds.
TEST(FullFence, OneOfTwoThreadsSeesTheOthersWrite) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "one processor: no race";
  constexpr std::uint32_t kRounds = support::race::kRounds;
  alignas(kCacheLinePair) std::atomic<std::uint32_t> one{0};
  alignas(kCacheLinePair) std::atomic<std::uint32_t> other{0};
  alignas(kCacheLinePair) std::atomic<std::uint32_t> one_done{0};
  alignas(kCacheLinePair) std::atomic<std::uint32_t> other_done{0};
  std::uint32_t seen_by_one = 0;
  std::uint32_t seen_by_other = 0;
  std::uint32_t both_missed = 0;
  // Returns what the other thread's word was.
  const auto enter = [](std::atomic<std::uint32_t>& own, std::atomic<std::uint32_t>& others,
                        std::uint32_t round) {
    own.store(round, std::memory_order_relaxed);  // ordered by the fence
    full_fence();
    return others.load(std::memory_order_relaxed);
  };
  support::race::run(
      [&] {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          support::race::pause(round % 8);
          seen_by_one = enter(one, other, round);
          support::race::await(other_done, round);
          if (seen_by_one < round && seen_by_other < round) ++both_missed;
          one_done.store(round, std::memory_order_release);  // pairs with await there
        }
      },
      [&] {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          support::race::pause(round % 5);
          seen_by_other = enter(other, one, round);
          other_done.store(round, std::memory_order_release);
          support::race::await(one_done, round);
        }
      });
  EXPECT_EQ(both_missed, 0U);
}

}  // namespace
}  // namespace offload::core
