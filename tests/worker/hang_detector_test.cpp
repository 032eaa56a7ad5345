#include "apps/worker/hang_detector.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace offload::worker {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration kInterval = 250ms;

/// Returns after how many looks a thread in this step is regarded as hung; 0: not within a hundred.
int looks_until_hung(HangDetector& detector) {
  for (int looks = 1; looks <= 100; ++looks) {
    if (detector.look(kInterval)) return looks;
  }
  return 0;
}

TEST(HangDetector, AThreadThatHasNotBegunDoesNotHang) {
  HangDetector detector;
  EXPECT_EQ(looks_until_hung(detector), 0);
}

TEST(HangDetector, AStepWithoutALimitDoesNotHang) {
  HangDetector detector;
  for (int looks = 0; looks < 3; ++looks) EXPECT_FALSE(detector.look(std::chrono::hours(2400)));
  detector.enter(0ms);
  EXPECT_EQ(looks_until_hung(detector), 2);
}

TEST(HangDetector, AStepThatOutlastsItsLimitIsAHang) {
  HangDetector detector;
  detector.enter(1s);
  EXPECT_EQ(looks_until_hung(detector), 6) << "one sees it first, five more last longer";
}

TEST(HangDetector, EachStepHasItsTime) {
  HangDetector detector;
  for (int step = 0; step < 20; ++step) {
    detector.enter(1s);
    for (int looks = 0; looks < 4; ++looks) EXPECT_FALSE(detector.look(kInterval)) << step;
  }
}

TEST(HangDetector, AStepWithoutALimitIsNone) {
  HangDetector detector;
  detector.enter(HangDetector::kNoLimit);
  EXPECT_EQ(looks_until_hung(detector), 0);
  detector.enter(250ms);
  EXPECT_NE(looks_until_hung(detector), 0);
}

// The unused time of a long step does not extend the next, short one.
TEST(HangDetector, AShortStepAfterALongOneBeginsAnew) {
  HangDetector detector;
  detector.enter(60s);
  for (int looks = 0; looks < 200; ++looks) ASSERT_FALSE(detector.look(kInterval));
  detector.enter(1s);
  EXPECT_FALSE(detector.look(kInterval));
}

TEST(HangDetector, WhatGoesOnIsNoHangAnyMore) {
  HangDetector detector;
  detector.enter(1s);
  EXPECT_NE(looks_until_hung(detector), 0);
  detector.enter(1s);
  EXPECT_FALSE(detector.look(kInterval));
}

TEST(HangDetector, IsForTwoThreads) {
  HangDetector detector;
  std::atomic<bool> stop{false};
  std::thread watched([&] {
    for (std::uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      detector.enter(i % 2 == 0 ? core::Duration(1h) : core::Duration(1ms));
    }
  });
  // Steps that end at once are never regarded as long.
  for (int looks = 0; looks < 1000; ++looks) detector.look(1us);
  stop.store(true, std::memory_order_relaxed);
  watched.join();
  detector.enter(250ms);
  EXPECT_EQ(looks_until_hung(detector), 3);
}

}  // namespace
}  // namespace offload::worker
