#include "apps/server/admission/retry_coordinator.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace offload::server {
namespace {

using State = RetryCoordinator::State;

constexpr core::RunTime kNow{std::chrono::hours(1)};

class RetryCoordinatorTest : public testing::Test {
 protected:
  std::shared_ptr<RetryState> all_ = std::make_shared<RetryState>();
  RetryCoordinator one_{all_};
  RetryCoordinator other_{all_};
};

TEST_F(RetryCoordinatorTest, WithoutSuspectsAllAreIdle) {
  EXPECT_EQ(one_.update(false, true, kNow), State::idle);
  EXPECT_EQ(other_.update(false, true, kNow), State::idle);
}

TEST_F(RetryCoordinatorTest, OneRetriesWhileTheOthersWait) {
  EXPECT_EQ(one_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(false, true, kNow), State::wait);
  EXPECT_EQ(other_.update(true, true, kNow), State::wait);
  EXPECT_EQ(one_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(one_.update(false, true, kNow), State::wait);  // it is the other's to retry
  EXPECT_EQ(other_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(false, true, kNow), State::idle);
  EXPECT_EQ(one_.update(false, true, kNow), State::idle);
}

TEST_F(RetryCoordinatorTest, WithoutAWorkerItKeepsNobodyFromRetrying) {
  EXPECT_EQ(one_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(true, true, kNow), State::wait);
  EXPECT_EQ(one_.update(true, false, kNow), State::idle);
  EXPECT_EQ(other_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(one_.update(true, true, kNow), State::wait);
}

// Both workers were lost; the next one serves both channels.
TEST_F(RetryCoordinatorTest, AThreadWithoutSuspectsWaitsFromTheLossOn) {
  EXPECT_EQ(one_.update(true, false, kNow), State::idle);
  EXPECT_EQ(other_.update(false, false, kNow), State::idle);
  const auto later = kNow + core::seconds(5);
  EXPECT_EQ(other_.update(false, true, later), State::wait);
  EXPECT_EQ(one_.update(true, true, later), State::exclusive);
}

TEST_F(RetryCoordinatorTest, NobodyWaitsForLong) {
  EXPECT_EQ(one_.update(true, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(true, true, kNow), State::wait);
  const auto later = kNow + RetryCoordinator::kLongestWait;
  EXPECT_EQ(other_.update(true, true, later - core::Duration(1)), State::wait);
  EXPECT_EQ(other_.update(true, true, later), State::shared);
  EXPECT_EQ(one_.update(true, true, later), State::exclusive);
  one_.update(false, true, later);
  EXPECT_EQ(other_.update(true, true, later), State::exclusive);
}

TEST_F(RetryCoordinatorTest, AThreadThatEndsRetriesNoMore) {
  std::optional<RetryCoordinator> ends(std::in_place, all_);
  EXPECT_EQ(ends->update(true, true, kNow), State::exclusive);
  EXPECT_EQ(other_.update(false, true, kNow), State::wait);
  ends.reset();
  EXPECT_EQ(other_.update(false, true, kNow), State::idle);
  EXPECT_EQ(other_.update(true, true, kNow), State::exclusive);
}

}  // namespace
}  // namespace offload::server
