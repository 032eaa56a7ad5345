// Many tasks that wait for one event.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tasks/sync/sync_event_context.hpp"

namespace offload::sync {
namespace {

using core::ErrorCode;
using Operation = SyncEventTask::Operation;

class ManyWaits : public testing::Test {
 protected:
  static constexpr std::size_t kTasks = 2000;

  ManyWaits() {
    context_.connect(engine_);
    context_.start();
  }
  void TearDown() override {
    if (context_.state() != progress::Context::State::idle) context_.stop();
  }

  SyncEventTask& submit(Operation operation, std::uint64_t argument) {
    SyncEventTask& task = *pool_.allocate();
    task.operation = operation;
    task.argument = argument;
    EXPECT_TRUE(context_.submit(task).ok());
    return task;
  }
  SyncEventTask& wait_for(std::uint64_t threshold) {
    return submit(Operation::wait_greater, threshold);
  }
  void run_dry() {
    while (engine_.progress()) continue;
  }

  progress::Engine engine_;
  SyncEvent event_{SyncEvent::Options{}};
  SyncEventContext context_{event_};
  std::vector<SyncEventTask*> ended_;
  progress::TaskPool<SyncEventTask> pool_{
      context_, kTasks, {&ManyWaits::note, &ManyWaits::note, &ended_}};

 private:
  static void note(SyncEventTask& task, void* ended) {
    static_cast<std::vector<SyncEventTask*>*>(ended)->push_back(&task);
  }
};

TEST_F(ManyWaits, EndInTheOrderOfTheirThresholds) {
  std::vector<SyncEventTask*> expected;
  for (std::uint64_t threshold = 0; threshold < 100; ++threshold) {
    expected.insert(expected.begin(), &wait_for(99 - threshold));
  }
  event_.set(100);
  run_dry();
  EXPECT_EQ(ended_, expected);
}

TEST_F(ManyWaits, OfEqualThresholdsEndInTheOrderOfSubmission) {
  std::vector<SyncEventTask*> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(&wait_for(7));
  event_.set(7);
  run_dry();
  EXPECT_TRUE(ended_.empty());
  event_.set(8);
  run_dry();
  EXPECT_EQ(ended_, expected);
}

TEST_F(ManyWaits, AThresholdThatNothingExceedsIsWaitedForUntilTheStop) {
  SyncEventTask& never = wait_for(~std::uint64_t{0});
  event_.set(~std::uint64_t{0});
  run_dry();
  EXPECT_TRUE(ended_.empty());
  context_.stop();
  EXPECT_EQ(ended_, std::vector{&never});
  EXPECT_EQ(never.status(), ErrorCode::shutdown);
}

TEST_F(ManyWaits, ATurnEndsSoManyAndTheNextGoesOn) {
  constexpr std::size_t kMost = progress::Context::kCompletionsAtOnce;
  for (std::size_t i = 0; i < kMost + 1; ++i) wait_for(i);
  event_.set(kMost + 1);
  engine_.progress();
  EXPECT_EQ(ended_.size(), kMost);
  engine_.progress();
  EXPECT_EQ(ended_.size(), kMost + 1);
}

// Whichever kind there is too much of, the other has its share of each turn.
TEST_F(ManyWaits, NeitherKindOfTaskKeepsTheOtherFromItsTurn) {
  for (std::size_t i = 0; i < kTasks / 2; ++i) submit(Operation::get, 0);
  SyncEventTask& wait = wait_for(0);
  event_.set(1);
  engine_.progress();
  EXPECT_EQ(wait.state(), progress::Task::State::done);
  for (std::size_t i = 0; i < kTasks / 4; ++i) wait_for(0);
  SyncEventTask& prompt = submit(Operation::get, 0);
  while (ended_.size() < kTasks / 2 + 1) ASSERT_TRUE(engine_.progress());
  run_dry();
  EXPECT_EQ(prompt.result, 1U);
}

TEST_F(ManyWaits, AStopLeavesNothingOfThemToTheNextStart) {
  for (std::uint64_t i = 0; i < 1000; ++i) wait_for(i * 37 % 1000);
  submit(Operation::get, 0);
  context_.stop();
  EXPECT_EQ(ended_.size(), 1001U);
  for (SyncEventTask* task : ended_) EXPECT_TRUE(pool_.release(*task).ok());
  ended_.clear();
  context_.start();
  SyncEventTask& only = wait_for(0);
  event_.set(5000);
  run_dry();
  EXPECT_EQ(ended_, std::vector{&only});
}

// Submissions and steps of the event in any order, against a list that is searched.
TEST_F(ManyWaits, AnySequenceEndsWhatASearchFinds) {
  std::minstd_rand random(4);
  std::vector<SyncEventTask*> waiting;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 3 != 0 && waiting.size() < kTasks) {
      waiting.push_back(&wait_for(event_.get() + random() % 500));
      continue;
    }
    event_.add(random() % 20);
    std::vector<SyncEventTask*> expected;
    for (SyncEventTask* task : waiting) {
      if (task->argument < event_.get()) expected.push_back(task);
    }
    std::ranges::stable_sort(expected, {}, &SyncEventTask::argument);
    std::erase_if(waiting, [&](auto* task) { return task->argument < event_.get(); });
    run_dry();
    ASSERT_EQ(ended_, expected) << "round " << round;
    for (SyncEventTask* task : ended_) {
      ASSERT_EQ(task->result, event_.get());
      ASSERT_TRUE(pool_.release(*task).ok());
    }
    ended_.clear();
  }
}

}  // namespace
}  // namespace offload::sync
