#include "telemetry/turn_watch.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace offload::telemetry {
namespace {

using core::Clock;

TEST(TurnWatch, IsHealthyWhileTheThreadTurns) {
  TurnWatch watch("control thread");
  EXPECT_TRUE(watch.health().holds);
  watch.note(Clock::now() - TurnWatch::kLongestTurn / 2);
  const Condition health = watch.health();
  EXPECT_TRUE(health.holds);
  EXPECT_TRUE(health.why.starts_with("the control thread turned 2."));
}

TEST(TurnWatch, AThreadThatHangsIsWaitedForOnce) {
  TurnWatch watch("control thread");
  watch.note(Clock::now() - 2 * TurnWatch::kLongestTurn);
  const auto began = Clock::now();
  EXPECT_FALSE(watch.health().holds);
  EXPECT_GE(Clock::now() - began, TurnWatch::kGrace);
  // If each call waited, this number of calls would take longer than the test may.
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(watch.health().holds);
  watch.note(Clock::now());
  EXPECT_TRUE(watch.health().holds);
}

// This happens after a pause of the process, if the asking thread is the first one to run.
TEST(TurnWatch, AThreadThatTurnsWhileItIsWaitedForIsHealthy) {
  TurnWatch watch("control thread");
  watch.note(Clock::now() - 2 * TurnWatch::kLongestTurn);
  std::thread late([&] {
    std::this_thread::sleep_for(TurnWatch::kGrace / 10);
    watch.note(Clock::now());
  });
  EXPECT_TRUE(watch.health().holds);
  late.join();
}

}  // namespace
}  // namespace offload::telemetry
