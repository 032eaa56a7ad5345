#include "apps/server/channel_scheduler.hpp"

#include <gtest/gtest.h>

namespace offload::server {
namespace {

using Owners = std::vector<comch::WorkerId>;

TEST(ChannelScheduler, OneWorkerServesAllChannels) {
  ChannelScheduler scheduler(3);
  EXPECT_FALSE(scheduler.served());
  scheduler.add(1, false, false);
  EXPECT_TRUE(scheduler.served());
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1, 1}));
}

TEST(ChannelScheduler, ASecondWorkerTakesHalfAndNoMoreMove) {
  ChannelScheduler scheduler(4);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1, 2, 2}));
  scheduler.add(3, false, false);
  EXPECT_EQ(scheduler.count_of(1) + scheduler.count_of(2), 3U);
  EXPECT_EQ(scheduler.count_of(3), 1U);
  scheduler.remove(3);
  EXPECT_EQ(scheduler.count_of(1), 2U);
  EXPECT_EQ(scheduler.count_of(2), 2U);
}

TEST(ChannelScheduler, ChannelsThatNeedNotMoveStay) {
  ChannelScheduler scheduler(12);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  const Owners before = scheduler.owners();
  scheduler.add(3, false, false);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto now = scheduler.owners()[i];
    EXPECT_TRUE(now == before[i] || now == 3) << i;
  }
  for (const comch::WorkerId id : {1U, 2U, 3U}) EXPECT_EQ(scheduler.count_of(id), 4U);
}

TEST(ChannelScheduler, WhatOneLeavesIsDealtToAllOthers) {
  ChannelScheduler scheduler(6);
  for (const comch::WorkerId id : {1U, 2U, 3U}) scheduler.add(id, false, false);
  scheduler.remove(1);
  EXPECT_EQ(scheduler.count_of(2), 3U);
  EXPECT_EQ(scheduler.count_of(3), 3U);
}

TEST(ChannelScheduler, TheOddChannelStaysWhereItIs) {
  ChannelScheduler scheduler(3);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1, 2}));
}

TEST(ChannelScheduler, AWorkerThatIsNotThereChangesNothing) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, false, false);
  scheduler.retire(7);
  scheduler.remove(7);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1}));
  EXPECT_EQ(scheduler.workers(), (Owners{1}));
  EXPECT_TRUE(scheduler.leaving().empty());
}

TEST(ChannelScheduler, MoreWorkersThanChannelsLeaveSomeWithoutOne) {
  ChannelScheduler scheduler(1);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  EXPECT_EQ(scheduler.owners(), (Owners{1}));
  scheduler.remove(1);
  EXPECT_EQ(scheduler.owners(), (Owners{2}));
}

TEST(ChannelScheduler, AStandByServesNothingUntilItIsNeeded) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, false, false);
  scheduler.add(2, true, false);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1}));
  scheduler.remove(1);
  EXPECT_EQ(scheduler.owners(), (Owners{2, 2}));
  scheduler.add(3, false, false);  // the former stand-by is active now
  EXPECT_EQ(scheduler.count_of(2), 1U);
}

TEST(ChannelScheduler, AStandByTakesThePlaceOfTheOneThatGoes) {
  ChannelScheduler scheduler(4);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  scheduler.add(3, true, false);
  scheduler.remove(2);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1, 3, 3}));
}

TEST(ChannelScheduler, WhereNoWorkerIsActiveAStandByServes) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, true, false);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1}));
}

TEST(ChannelScheduler, AStandByThatGoesChangesNothing) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, false, false);
  scheduler.add(2, true, false);
  scheduler.remove(2);
  EXPECT_EQ(scheduler.owners(), (Owners{1, 1}));
}

TEST(ChannelScheduler, AWorkerThatLeavesGivesItsChannelsAway) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  scheduler.retire(1);
  EXPECT_EQ(scheduler.owners(), (Owners{2, 2}));
  EXPECT_EQ(scheduler.leaving(), (Owners{1}));
  EXPECT_EQ(scheduler.workers(), (Owners{1, 2}));
  scheduler.remove(1);
  EXPECT_TRUE(scheduler.leaving().empty());
}

TEST(ChannelScheduler, TheLastOneThatLeavesLeavesNobody) {
  ChannelScheduler scheduler(2);
  scheduler.add(1, false, false);
  scheduler.retire(1);
  EXPECT_FALSE(scheduler.served());
  EXPECT_EQ(scheduler.owners(), (Owners{0, 0}));
}

TEST(ChannelScheduler, AReplacementTakesThePlaceOfTheOldest) {
  ChannelScheduler scheduler(4);
  scheduler.add(1, false, false);
  scheduler.add(2, false, false);
  scheduler.add(3, true, false);
  scheduler.add(4, false, true);
  EXPECT_EQ(scheduler.owners(), (Owners{4, 4, 2, 2}));
  EXPECT_EQ(scheduler.leaving(), (Owners{1}));
  scheduler.remove(1);
  EXPECT_EQ(scheduler.owners(), (Owners{4, 4, 2, 2}));  // the stand-by still stands by
}

TEST(ChannelScheduler, AReplacementOfNobodyJustServes) {
  ChannelScheduler scheduler(1);
  scheduler.add(1, false, true);
  EXPECT_EQ(scheduler.owners(), (Owners{1}));
}

TEST(ChannelScheduler, StrangersDoNothing) {
  ChannelScheduler scheduler(1);
  scheduler.add(1, false, false);
  scheduler.retire(9);
  scheduler.remove(9);
  EXPECT_EQ(scheduler.owners(), (Owners{1}));
}

}  // namespace
}  // namespace offload::server
