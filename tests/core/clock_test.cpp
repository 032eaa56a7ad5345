#include "core/clock.hpp"

#include <gtest/gtest.h>

namespace offload::core {
namespace {

using namespace std::chrono_literals;

TEST(Clock, SecondsAndBack) {
  EXPECT_EQ(seconds(1.5), 1500ms);
  EXPECT_EQ(seconds(0.25e-6), 250ns);
  EXPECT_EQ(seconds(0), Duration{});
  EXPECT_DOUBLE_EQ(to_seconds(2500us), 0.0025);
}

TEST(Clock, TheLastTickWasNotLongAgo) {
  for (int i = 0; i < 100; ++i) {
    const TimePoint before = Clock::now();
    const TimePoint tick = time_of_tick();
    EXPECT_LE(tick, Clock::now());
    EXPECT_GE(tick, before - 100ms);
  }
}

}  // namespace
}  // namespace offload::core
