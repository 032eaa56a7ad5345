#include "apps/client/load/pacer.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using core::TimePoint;

class PacerTest : public testing::Test {
 protected:
  /// A request each millisecond.
  Pacer make(TimePoint end, std::uint64_t limit) {
    return {Arrivals::constant(1000, 0), {start_, start_, end, 1ms}, limit};
  }

  const TimePoint start_ = TimePoint{} + 1h;
  const std::unique_ptr<Interval> interval_ = std::make_unique<Interval>();
};

TEST_F(PacerTest, RequestsBecomeDueByTheClock) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  pacer.notice(start_ - 1ns, *interval_);
  EXPECT_EQ(pacer.due(), 0U);
  EXPECT_EQ(pacer.next(), start_);
  pacer.notice(start_ + 10ms, *interval_);
  EXPECT_EQ(pacer.due(), 11U);
  EXPECT_EQ(pacer.next(), start_ + 11ms);
  EXPECT_EQ(interval_->due, 11U);
  EXPECT_EQ(interval_->lag.max(), 10ms);
  EXPECT_EQ(interval_->noticed_late, 9U);  // those of 0 to 8 ms
}

TEST_F(PacerTest, WhatWaitsKeepsItsIntendedTime) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  for (int i = 0; i <= 10; ++i) pacer.notice(start_ + i * 1ms, *interval_);
  EXPECT_EQ(interval_->noticed_late, 0U);
  EXPECT_EQ(pacer.take(start_ + 10ms, *interval_), start_);
  EXPECT_EQ(pacer.take(start_ + 10ms, *interval_), start_ + 1ms);
  EXPECT_EQ(pacer.due(), 9U);
  EXPECT_EQ(interval_->held_back, 2U);
}

TEST_F(PacerTest, WhatWasNoticedLateIsNotHeldBack) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  pacer.notice(start_, *interval_);         // request 0 in time
  pacer.notice(start_ + 5ms, *interval_);   // 1, 2, 3 late; 4 and 5 in time
  pacer.notice(start_ + 20ms, *interval_);  // 6 to 18 late
  EXPECT_EQ(interval_->noticed_late, 16U);
  for (int i = 0; i < 6; ++i) pacer.take(start_ + 20ms, *interval_);
  EXPECT_EQ(interval_->held_back, 3U);  // 0, 4 and 5
  pacer.close(start_ + 25ms, *interval_);
  EXPECT_EQ(interval_->never_sent, 15U);
  EXPECT_EQ(interval_->held_back, 5U);  // and 19, 20
}

TEST_F(PacerTest, TheWarmUpIsNotCounted) {
  Pacer pacer(Arrivals::constant(1000, 0), {start_, start_ + 10ms, TimePoint::max(), 1ms},
              UINT64_MAX);
  pacer.notice(start_ + 14ms, *interval_);
  EXPECT_EQ(pacer.due(), 15U);
  EXPECT_EQ(interval_->due, 5U);
  EXPECT_EQ(interval_->noticed_late, 3U);
  EXPECT_EQ(interval_->lag.count(), 5U);
  pacer.close(start_ + 14ms, *interval_);
  EXPECT_EQ(interval_->never_sent, 5U);
}

TEST_F(PacerTest, ABacklogIsNoticedInParts) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  pacer.notice(start_ + 20s, *interval_);
  EXPECT_EQ(pacer.due(), 8192U);
  pacer.notice(start_ + 20s, *interval_);
  EXPECT_EQ(pacer.due(), 16384U);
  for (int i = 0; i < 16384; ++i) pacer.take(start_ + 20s, *interval_);
  EXPECT_EQ(interval_->noticed_late, 16384U);
  EXPECT_EQ(interval_->held_back, 0U);
}

TEST_F(PacerTest, NothingIsDueFromTheEndOn) {
  Pacer pacer = make(start_ + 5ms, UINT64_MAX);
  pacer.notice(start_ + 1h, *interval_);
  EXPECT_EQ(pacer.due(), 5U);
  EXPECT_TRUE(pacer.ended());
}

TEST_F(PacerTest, NoMoreThanTheLimitIsDue) {
  Pacer pacer = make(TimePoint::max(), 3);
  pacer.notice(start_ + 1h, *interval_);
  EXPECT_EQ(pacer.due(), 3U);
  EXPECT_TRUE(pacer.ended());
}

TEST_F(PacerTest, WhatWasNeverSentIsCounted) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  pacer.notice(start_ + 4ms, *interval_);
  pacer.take(start_ + 4ms, *interval_);
  pacer.close(start_ + 4ms, *interval_);
  EXPECT_EQ(interval_->never_sent, 4U);
  EXPECT_EQ(pacer.due(), 0U);
  EXPECT_TRUE(pacer.ended());
  pacer.close(start_ + 4ms, *interval_);
  EXPECT_EQ(interval_->never_sent, 4U);
}

TEST_F(PacerTest, WhatHadNoTimeToBeSentIsNotHeldBack) {
  Pacer pacer = make(TimePoint::max(), UINT64_MAX);
  for (int i = 0; i <= 4; ++i) pacer.notice(start_ + i * 1ms, *interval_);
  pacer.close(start_ + 4ms, *interval_);
  EXPECT_EQ(interval_->never_sent, 5U);
  EXPECT_EQ(interval_->held_back, 3U);  // not those of 3 ms and 4 ms: the tolerance is 1 ms
  EXPECT_EQ(interval_->unfinished_age.count(), 5U);
}

TEST_F(PacerTest, ResponsesAfterTheLastRequestShowHowLongItTook) {
  Pacer pacer = make(TimePoint::max(), 3);
  pacer.notice(start_ + 2ms, *interval_);
  for (int i = 0; i < 3; ++i) pacer.take(start_ + 2ms, *interval_);
  pacer.record_response(1ms, *interval_);
  pacer.note_unfinished(2, *interval_);
  pacer.note_unfinished(2, *interval_);
  pacer.record_response(2ms, *interval_);
  EXPECT_EQ(interval_->unfinished, 2U);
  EXPECT_EQ(interval_->unfinished_age.count(), 1U);
  EXPECT_EQ(interval_->response.count(), 2U);
}

}  // namespace
}  // namespace offload::client
