#include "rdma_tasks/work_queue.hpp"

#include <gtest/gtest.h>

#include <array>

#include "rdma_tasks/operation.hpp"

namespace offload::rdma {
namespace {

constexpr std::uint64_t kTag = std::uint64_t{5} << 32;

class WorkQueueTest : public testing::Test {
 protected:
  /// Adds a task, and returns the lower half of its wr_id.
  std::uint32_t add(std::size_t task) {
    const auto number = static_cast<std::uint32_t>(queue_.next(kTag).wr_id);
    queue_.add(tasks_.at(task));
    return number;
  }
  void post() {
    ibv_send_wr* last = nullptr;
    ASSERT_NE(queue_.unposted(last), nullptr);
    queue_.mark_posted();
  }

  WorkQueue<ibv_send_wr> queue_{3, 2};
  std::array<SendTask, 3> tasks_;
};

TEST_F(WorkQueueTest, WhatIsAddedIsPostedAsOneList) {
  ibv_send_wr* last = nullptr;
  EXPECT_EQ(queue_.unposted(last), nullptr);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(add(i), i);
  EXPECT_TRUE(queue_.is_full());
  EXPECT_EQ(queue_.outstanding(), 0U);
  const ibv_send_wr* const first = queue_.unposted(last);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->wr_id, kTag);
  EXPECT_EQ(first->next->next, last);
  EXPECT_EQ(last->wr_id, kTag + 2);
  EXPECT_EQ(last->next, nullptr);
  EXPECT_NE(first->sg_list, last->sg_list);
  EXPECT_EQ(queue_.mark_posted(), 3U);
  EXPECT_EQ(queue_.outstanding(), 3U);
  EXPECT_EQ(queue_.unposted(last), nullptr);
}

TEST_F(WorkQueueTest, ACompletionEndsAllTasksUpToItsOwn) {
  const std::uint32_t first = add(0);
  add(1);
  const std::uint32_t third = add(2);
  EXPECT_EQ(queue_.count_up_to(first), 0U);  // not posted
  post();
  EXPECT_EQ(queue_.count_up_to(first), 1U);
  EXPECT_EQ(queue_.count_up_to(third), 3U);
  EXPECT_EQ(queue_.count_up_to(third + 1), 0U);
  EXPECT_EQ(&queue_.pop(), &tasks_[0]);
  EXPECT_EQ(queue_.count_up_to(first), 0U);  // it has ended
  EXPECT_EQ(queue_.count_up_to(third), 2U);
}

TEST_F(WorkQueueTest, SlotsAreUsedAgainAndNumbersAreNot) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    EXPECT_EQ(add(round % 3), round);
    post();
    EXPECT_EQ(&queue_.pop(), &tasks_.at(round % 3));
    EXPECT_EQ(queue_.size(), 0U);
  }
}

// The bit above the number marks a receive.
TEST_F(WorkQueueTest, NumbersWrapBelowTheBitOfReceives) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 31;
  WorkQueue<ibv_send_wr> queue(3, 2, kWrap - 2);
  for (const std::uint64_t number : {kWrap - 2, kWrap - 1, std::uint64_t{0}}) {
    EXPECT_EQ(queue.next(kTag).wr_id, kTag | number);
    queue.add(tasks_[0]);
  }
  queue.mark_posted();
  EXPECT_EQ(queue.count_up_to(kWrap - 2), 1U);
  EXPECT_EQ(queue.count_up_to(0), 3U);
  EXPECT_EQ(queue.count_up_to(1), 0U);
  for (int i = 0; i < 3; ++i) (void)queue.pop();
  EXPECT_EQ(queue.count_up_to(0), 0U);
}

TEST_F(WorkQueueTest, WhatIsNotPostedCanBeDropped) {
  add(0);
  post();
  add(1);
  add(2);
  queue_.drop_unposted();
  EXPECT_EQ(queue_.size(), 1U);
  queue_.clear();
  EXPECT_EQ(queue_.size(), 0U);
}

}  // namespace
}  // namespace offload::rdma
