#include "kernels/rdma/wait.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace offload::kernels::rdma {
namespace {

constexpr std::uint64_t kHour = 3'600'000'000'000;

/// Returns the number of the first look after which the wait is over; 0: of `most` looks none.
int first_over(Wait& wait, int most) {
  for (int look = 1; look <= most; ++look) {
    if (wait.is_over()) return look;
  }
  return 0;
}

// Most waits end before the first look at the clock.
TEST(Wait, LooksAtTheClockEverySixteenthTime) {
  Wait none(WaitLimit{0});
  EXPECT_EQ(first_over(none, 100), 16);
  EXPECT_EQ(first_over(none, 100), 16);
}

TEST(Wait, LastsFromItsFirstLooksOn) {
  constexpr std::uint64_t kShort = 20'000'000;
  const auto begin = std::chrono::steady_clock::now();
  Wait wait(WaitLimit{kShort});
  EXPECT_NE(first_over(wait, 1'000'000'000), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::nanoseconds(kShort));
}

TEST(Wait, EndsWithTheFlagThatIsLookedAtMoreSeldom) {
  std::uint32_t stop = 0;
  Wait wait(WaitLimit{kHour, &stop});
  EXPECT_EQ(first_over(wait, 256), 0);
  stop = 2;
  EXPECT_EQ(first_over(wait, 300), 256);
  Wait without_flag(WaitLimit{kHour});
  EXPECT_EQ(first_over(without_flag, 600), 0);
}

}  // namespace
}  // namespace offload::kernels::rdma
