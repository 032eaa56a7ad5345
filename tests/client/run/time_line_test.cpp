#include "apps/client/run/time_line.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "metrics/hdr_codec.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

class TimeLineTest : public testing::Test {
 protected:
  /// An interval with `valid` responses of a millisecond.
  void add(TimeLine& time_line, std::size_t thread, core::Duration begin, core::Duration end,
           std::uint64_t valid) {
    const auto interval = std::make_unique<Interval>();
    interval->begin = start_ + begin;
    interval->end = start_ + end;
    interval->last_answer = interval->end;
    interval->sent = interval->answered = interval->valid = valid;
    interval->in_flight_ns = static_cast<double>((end - begin).count());
    for (std::uint64_t i = 0; i < valid; ++i) interval->service.record(1ms);
    time_line.add(thread, *interval);
  }
  TimeLine make(core::Duration warmup, std::size_t threads) {
    return {start_, warmup, threads,
            [this](const results::RunInterval& second) { told_.push_back(second); }};
  }

  const core::TimePoint start_ = core::TimePoint{} + 1h;
  std::vector<results::RunInterval> told_;
};

TEST_F(TimeLineTest, ThreadsAreJoinedSecondBySecond) {
  auto time_line = make(0s, 2);
  add(time_line, 0, 0s, 1s, 10);
  EXPECT_TRUE(told_.empty());  // the other thread has not told yet
  add(time_line, 1, 0s, 1001ms, 5);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].operations, 15U);
  EXPECT_DOUBLE_EQ(told_[0].start_s, 0);
  EXPECT_DOUBLE_EQ(told_[0].length_s, 1.001);
  EXPECT_NEAR(*told_[0].in_flight, 2, 0.01);
  EXPECT_EQ(metrics::decode_hdr(told_[0].service_time_us.histogram).count(), 15U);
  add(time_line, 0, 1s, 1500ms, 3);
  time_line.finish();
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[1].operations, 3U);
  EXPECT_DOUBLE_EQ(*told_[1].in_flight, 1);
  EXPECT_EQ(time_line.total().valid, 18U);
  EXPECT_EQ(time_line.total().service.count(), 18U);
}

TEST_F(TimeLineTest, ASecondHasTheFiguresOfItsInterval) {
  const auto interval = std::make_unique<Interval>();
  interval->begin = start_ + 3s;
  interval->end = start_ + 5s;
  interval->answered = 9;
  interval->valid = 7;
  interval->errors.add(ErrorKind::mismatch, 2);
  interval->in_flight_ns = 8e9;
  interval->service.record(2us);
  const auto second = second_of(*interval, start_);
  EXPECT_DOUBLE_EQ(second.start_s, 3);
  EXPECT_DOUBLE_EQ(second.length_s, 2);
  EXPECT_EQ(second.operations, 9U);
  EXPECT_EQ(second.valid, 7U);
  EXPECT_EQ(second.errors, 2U);
  EXPECT_EQ(second.in_flight, 4.0);
  EXPECT_EQ(second.service_time_us.count, 1U);
  ASSERT_TRUE(second.response_time_us);
  EXPECT_EQ(second.response_time_us->count, 0U);
  interval->end = interval->begin;
  EXPECT_EQ(second_of(*interval, start_).in_flight, 0.0);
}

TEST_F(TimeLineTest, TheWarmUpIsApart) {
  auto time_line = make(2s, 1);
  add(time_line, 0, 0s, 2s, 100);
  add(time_line, 0, 2s, 3s, 7);
  time_line.finish();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_DOUBLE_EQ(told_[0].start_s, 2);
  EXPECT_EQ(time_line.total().valid, 7U);
  EXPECT_EQ(time_line.warmup().valid, 100U);
}

TEST_F(TimeLineTest, AThreadThatIsBehindIsNotWaitedForAndLosesNothing) {
  auto time_line = make(0s, 2);
  for (int second = 0; second < 4; ++second) {
    add(time_line, 0, second * 1s, (second + 1) * 1s, 1);
  }
  EXPECT_EQ(told_.size(), 2U);
  add(time_line, 1, 0s, 4s, 50);  // counts to the oldest second that is left
  time_line.finish();
  ASSERT_EQ(told_.size(), 4U);
  EXPECT_EQ(told_[2].operations, 51U);
  EXPECT_EQ(time_line.total().valid, 54U);
}

TEST_F(TimeLineTest, WhatIsEmptyIsNoSecond) {
  auto time_line = make(0s, 1);
  add(time_line, 0, 0s, 0s, 0);
  time_line.finish();
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace offload::client
