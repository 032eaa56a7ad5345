#include "tasks/sync/sync_event_context.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "progress/engine.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/eventually.hpp"

namespace offload::sync {
namespace {

using core::ErrorCode;
using Operation = SyncEventTask::Operation;
using Pool = progress::TaskPool<SyncEventTask>;

class Tasks : public testing::Test {
 protected:
  static constexpr std::size_t kTasks = 8;

  Tasks() { context_.connect(engine_); }
  void TearDown() override {
    if (context_.state() != progress::Context::State::idle) context_.stop();
  }

  SyncEventTask& make(Operation operation, std::uint64_t argument = 0) {
    SyncEventTask* const task = pool_.allocate();
    EXPECT_NE(task, nullptr);
    task->operation = operation;
    task->argument = argument;
    return *task;
  }
  SyncEventTask& submit(Operation operation, std::uint64_t argument = 0) {
    SyncEventTask& task = make(operation, argument);
    EXPECT_TRUE(context_.submit(task).ok());
    return task;
  }
  /// Runs the engine until `ended` tasks have ended.
  bool run_until(std::size_t ended) {
    return support::eventually([&] { return ended_.size() >= ended; },
                               [&] { engine_.run_once(core::Clock::now() + kSlice); });
  }

  static constexpr core::Duration kSlice = std::chrono::milliseconds(10);

  progress::Engine engine_;
  SyncEvent event_{SyncEvent::Options{}};
  SyncEventContext context_{event_};
  std::vector<SyncEventTask*> ended_;
  Pool pool_{context_, kTasks, {&Tasks::note, &Tasks::note, &ended_}};

 private:
  static void note(SyncEventTask& task, void* ended) {
    static_cast<std::vector<SyncEventTask*>*>(ended)->push_back(&task);
  }
};

TEST_F(Tasks, SetAddAndGetInTheOrderOfSubmission) {
  context_.start();
  submit(Operation::set, 40);
  SyncEventTask& add = submit(Operation::add, 2);
  SyncEventTask& get = submit(Operation::get);
  EXPECT_EQ(event_.get(), 0U) << "before a turn of the engine";
  ASSERT_TRUE(run_until(3));
  EXPECT_EQ(add.result, 40U);
  EXPECT_EQ(get.result, 42U);
  for (SyncEventTask* task : ended_) EXPECT_TRUE(task->status().ok());
}

TEST_F(Tasks, AWaitEndsWhenTheEventAllowsIt) {
  context_.start();
  SyncEventTask& second = submit(Operation::wait_greater, 1);
  SyncEventTask& first = submit(Operation::wait_greater, 0);
  EXPECT_FALSE(engine_.progress());
  event_.set(1);
  ASSERT_TRUE(run_until(1));
  EXPECT_EQ(ended_, std::vector{&first});
  EXPECT_EQ(first.result, 1U);
  event_.set(7);
  ASSERT_TRUE(run_until(2));
  EXPECT_EQ(second.result, 7U);
}

TEST_F(Tasks, AWaitForOtherBitsEndsWhenTheyAre) {
  event_.set(0x12);
  context_.start();
  SyncEventTask& high = make(Operation::wait_not_equal, 0x10);
  high.mask = 0xf0;
  SyncEventTask& low = make(Operation::wait_not_equal, 0x12);
  low.mask = 0x0f;
  SyncEventTask& none = make(Operation::wait_not_equal, 0);
  none.mask = 0;
  for (SyncEventTask* task : {&high, &low, &none}) ASSERT_TRUE(context_.submit(*task).ok());
  for (int i = 0; i < 5; ++i) engine_.progress();
  EXPECT_TRUE(ended_.empty());
  event_.set(0x13);
  ASSERT_TRUE(run_until(1));
  EXPECT_EQ(ended_, std::vector<SyncEventTask*>{&low});
  EXPECT_EQ(low.result, 0x13U);
  event_.set(0x23);
  ASSERT_TRUE(run_until(2));
  EXPECT_EQ(ended_.back(), &high);
  // If there are other tasks, all get their turn.
  submit(Operation::wait_not_equal, 1);
  submit(Operation::wait_greater, 1);
  submit(Operation::get);
  ASSERT_TRUE(run_until(5));
  EXPECT_EQ(none.state(), progress::Task::State::submitted);
  context_.stop();
  EXPECT_EQ(none.status(), ErrorCode::shutdown);
}

TEST_F(Tasks, AWaitForAValueEndsWhenItIsThere) {
  event_.set(0x12);
  context_.start();
  SyncEventTask& low = make(Operation::wait_equal, 0x33);
  low.mask = 0x0f;
  ASSERT_TRUE(context_.submit(low).ok());
  SyncEventTask& all = submit(Operation::wait_equal, 0x24);
  SyncEventTask& other = submit(Operation::wait_not_equal, 0x12);
  for (int i = 0; i < 5; ++i) engine_.progress();
  EXPECT_TRUE(ended_.empty());
  event_.set(0x23);
  ASSERT_TRUE(run_until(2));
  EXPECT_EQ(ended_, (std::vector{&low, &other}));
  EXPECT_EQ(low.result, 0x23U);
  event_.add(1);
  ASSERT_TRUE(run_until(3));
  EXPECT_EQ(ended_.back(), &all);
  SyncEventTask& never = submit(Operation::wait_equal, 0);
  engine_.progress();
  context_.stop();
  EXPECT_EQ(never.status(), ErrorCode::shutdown);
}

TEST_F(Tasks, ATaskMayEndTheWaitOfAnother) {
  context_.start();
  SyncEventTask& wait = submit(Operation::wait_greater, 0);
  submit(Operation::add, 1);
  ASSERT_TRUE(run_until(2));
  EXPECT_EQ(ended_.back(), &wait);
}

TEST_F(Tasks, AnotherThreadEndsTheWaitOfAnEngineThatSleeps) {
  context_.start();
  submit(Operation::wait_greater, 0);
  std::thread publisher([&] { event_.add(1); });
  EXPECT_TRUE(run_until(1));
  publisher.join();
}

TEST_F(Tasks, StopEndsWhatWaits) {
  context_.start();
  SyncEventTask& wait = submit(Operation::wait_greater, 0);
  context_.stop();
  ASSERT_EQ(ended_, std::vector{&wait});
  EXPECT_EQ(wait.status(), ErrorCode::shutdown);
}

TEST_F(Tasks, AnUnknownOperationIsRefused) {
  context_.start();
  SyncEventTask& task = make(static_cast<Operation>(99));
  EXPECT_EQ(context_.submit(task), ErrorCode::invalid_value);
}

TEST_F(Tasks, NothingIsTakenBeforeTheStartOrAfterTheStop) {
  SyncEventTask& task = make(Operation::get);
  EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
  context_.start();
  context_.stop();
  EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
}

}  // namespace
}  // namespace offload::sync
