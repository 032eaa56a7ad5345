#include "apps/server/admission/retry_coordinator.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace offload::server {
namespace {

using State = RetryCoordinator::State;
using SuspectKind = RetryCoordinator::Suspects;

constexpr core::RunTime kNow{std::chrono::hours(1)};

class RetryCoordinatorTest : public testing::Test {
 protected:
  static constexpr RetryState::Times kTimes{.settle = std::chrono::milliseconds(20),
                                            .longest_wait = std::chrono::milliseconds(100)};
  void lose() {
    for (RetryCoordinator* const each : {&one_, &other_}) each->note_loss(kNow - kTimes.settle);
  }

  std::shared_ptr<RetryState> all_ = std::make_shared<RetryState>(2, kTimes);
  RetryCoordinator one_{all_, 0};
  RetryCoordinator other_{all_, 1};
};

TEST_F(RetryCoordinatorTest, WithoutSuspectsAllAreIdle) {
  EXPECT_EQ(one_.update(SuspectKind::none, true, kNow), State::idle);
  EXPECT_EQ(other_.update(SuspectKind::none, true, kNow), State::idle);
}

TEST_F(RetryCoordinatorTest, OneRetriesWhileTheOthersWait) {
  lose();
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(SuspectKind::none, true, kNow), State::wait);
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::wait);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(one_.update(SuspectKind::none, true, kNow), State::wait);  // it is the other's to retry
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(SuspectKind::none, true, kNow), State::idle);
  EXPECT_EQ(one_.update(SuspectKind::none, true, kNow), State::idle);
}

TEST_F(RetryCoordinatorTest, WithoutAWorkerItKeepsNobodyFromRetrying) {
  lose();
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::wait);
  EXPECT_EQ(one_.update(SuspectKind::some, false, kNow), State::idle);
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::wait);
}

// Both workers were lost; the next one serves both channels.
TEST_F(RetryCoordinatorTest, AThreadWithoutSuspectsWaitsFromTheLossOn) {
  EXPECT_EQ(one_.update(SuspectKind::some, false, kNow), State::idle);
  EXPECT_EQ(other_.update(SuspectKind::none, false, kNow), State::idle);
  const auto later = kNow + core::seconds(5);
  for (RetryCoordinator* const each : {&one_, &other_}) each->note_move(later);
  EXPECT_EQ(other_.update(SuspectKind::none, true, later), State::wait);
  EXPECT_EQ(one_.update(SuspectKind::some, true, later), State::exclusive);
}

TEST_F(RetryCoordinatorTest, NobodyWaitsForLong) {
  lose();
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::wait);
  const auto later = kNow - kTimes.settle + kTimes.longest_wait;
  EXPECT_EQ(other_.update(SuspectKind::some, true, later - core::Duration(1)), State::wait);
  EXPECT_EQ(other_.update(SuspectKind::some, true, later), State::shared);
  EXPECT_EQ(one_.update(SuspectKind::some, true, later), State::exclusive);
  one_.update(SuspectKind::none, true, later);
  EXPECT_EQ(other_.update(SuspectKind::some, true, later), State::exclusive);
}

// Two workers of one process are lost one after the other.
TEST_F(RetryCoordinatorTest, NobodyIsInDoubtRightAfterALoss) {
  one_.note_loss(kNow);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(one_.update(SuspectKind::doubted, true, kNow), State::wait);
  one_.note_loss(kNow + core::Duration(5));
  EXPECT_EQ(one_.update(SuspectKind::doubted, true, kNow + kTimes.settle), State::wait);
  EXPECT_EQ(one_.update(SuspectKind::doubted, true, kNow + kTimes.settle + core::Duration(5)),
            State::exclusive);
}

TEST_F(RetryCoordinatorTest, AThreadIsNotExclusiveWhileAnotherHasRequests) {
  lose();
  other_.publish(true);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::wait);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow + kTimes.longest_wait), State::shared);
  one_.note_retry();
  EXPECT_FALSE(one_.was_alone());
  other_.publish(false);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow + kTimes.longest_wait), State::exclusive);
  EXPECT_FALSE(one_.was_alone());
  one_.note_retry();
  EXPECT_TRUE(one_.was_alone());
}

TEST_F(RetryCoordinatorTest, ARequestIsNotAloneOnceAnotherThreadHasHadRequests) {
  lose();
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  one_.note_retry();
  one_.publish(true);
  EXPECT_TRUE(one_.was_alone());
  other_.publish(true);
  EXPECT_FALSE(one_.was_alone());
  other_.publish(false);
  EXPECT_EQ(one_.update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_FALSE(one_.was_alone());
}

TEST_F(RetryCoordinatorTest, AThreadThatEndsRetriesNoMore) {
  lose();
  std::optional<RetryCoordinator> ends(std::in_place, all_, 0);
  EXPECT_EQ(ends->update(SuspectKind::some, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(SuspectKind::none, true, kNow), State::wait);
  ends.reset();
  EXPECT_EQ(other_.update(SuspectKind::none, true, kNow), State::idle);
  EXPECT_EQ(other_.update(SuspectKind::some, true, kNow), State::exclusive);
}

}  // namespace
}  // namespace offload::server
