#include "progress/task_pool.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>

#include "tests/progress/context_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::progress {
namespace {

using core::ErrorCode;
using core::Status;
using support::thrown_by;

class TaskPoolTest : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 3;

  TaskPoolTest() {
    context_.connect(engine_);
    pool_.emplace(context_, kSize, outcomes_.callbacks());
    context_.start();
  }
  void TearDown() override { context_.stop(); }

  Engine engine_;
  FakeContext context_;
  Outcomes outcomes_;
  std::optional<TaskPool<FakeTask>> pool_;
};

TEST_F(TaskPoolTest, HandsOutSoManyAndNoMore) {
  std::set<FakeTask*> tasks;
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(pool_->available(), kSize - i);
    FakeTask* const task = pool_->allocate();
    ASSERT_NE(task, nullptr);
    EXPECT_EQ(task->state(), Task::State::idle);
    EXPECT_EQ(&task->context(), &context_);
    tasks.insert(task);
  }
  EXPECT_EQ(tasks.size(), kSize);
  EXPECT_EQ(pool_->size(), kSize);
  EXPECT_EQ(pool_->allocate(), nullptr);
  EXPECT_EQ(pool_->release(**tasks.begin()), Status());
  EXPECT_EQ(pool_->allocate(), *tasks.begin());
}

TEST_F(TaskPoolTest, APoolForSeveralContextsGivesEachTaskTheOneOfItsAllocation) {
  FakeContext other;
  other.connect(engine_);
  other.start();
  std::size_t ended = 0;
  TaskPool<FakeTask> pool(
      2, {[](Task&, void* count) { ++*static_cast<std::size_t*>(count); }, &ended});
  FakeTask* const first = pool.allocate_for(context_);
  FakeTask* const second = pool.allocate_for(other);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(pool.allocate_for(other), nullptr);
  EXPECT_EQ(&first->context(), &context_);
  EXPECT_EQ(context_.submit(*second), ErrorCode::invalid_value);
  EXPECT_EQ(context_.submit(*first), Status());
  EXPECT_EQ(other.submit(*second), Status());
  other.stop();
  EXPECT_EQ(ended, 1U);
  EXPECT_EQ(first->state(), Task::State::submitted);
  context_.stop();
  EXPECT_EQ(ended, 2U);
  EXPECT_EQ(pool.release(*second), Status());
  EXPECT_EQ(pool.allocate_for(context_), second);
  EXPECT_EQ(&second->context(), &context_);
  context_.start();  // for the end of the test
}

TEST_F(TaskPoolTest, HandsOutTheWarmestFirst) {
  FakeTask& first = *pool_->allocate();
  FakeTask& second = *pool_->allocate();
  EXPECT_EQ(pool_->release(first), Status());
  EXPECT_EQ(pool_->release(second), Status());
  EXPECT_EQ(pool_->allocate(), &second);
  EXPECT_EQ(pool_->allocate(), &first);
}

TEST_F(TaskPoolTest, AnAllocatedTaskIsLikeNew) {
  FakeTask& task = *pool_->allocate();
  EXPECT_EQ(task.user_data, nullptr);
  task.user_data = this;
  EXPECT_TRUE(context_.submit(task).ok());
  context_.completions = 1;
  context_.outcome = ErrorCode::driver;
  engine_.progress();
  EXPECT_EQ(task.user_data, this);
  EXPECT_EQ(pool_->release(task), Status());
  ASSERT_EQ(pool_->allocate(), &task);
  EXPECT_EQ(task.user_data, nullptr);
  EXPECT_EQ(task.status(), Status());
  EXPECT_EQ(task.state(), Task::State::idle);
}

TEST_F(TaskPoolTest, TakesBackWhatIsItsOwnAndNotAtWork) {
  FakeTask& task = *pool_->allocate();
  EXPECT_TRUE(context_.submit(task).ok());
  EXPECT_EQ(pool_->release(task), ErrorCode::bad_state);
  context_.completions = 1;
  engine_.progress();
  EXPECT_EQ(pool_->release(task), Status());
  EXPECT_EQ(pool_->release(task), ErrorCode::bad_state);
  EXPECT_EQ(pool_->available(), kSize);

  FakeContext idle;
  TaskPool<FakeTask> other(idle, 1, outcomes_.callbacks());
  FakeTask& stranger = *other.allocate();
  EXPECT_EQ(pool_->release(stranger), ErrorCode::invalid_value);
  EXPECT_EQ(pool_->available(), kSize);
}

class HoldingContext;

/// A task with an argument that holds something.
struct HoldingTask final : Task {
  using ContextType = HoldingContext;
  std::shared_ptr<int> argument;
  void let_go() noexcept { argument.reset(); }
};

class HoldingContext final : public Context {
 public:
  HoldingContext() : Context("holding") {}

 private:
  core::Status on_submit(Task&) noexcept override { return {}; }
  bool on_poll(std::size_t) override { return false; }
};

TEST(TaskPool, ReleasingATaskGivesUpWhatItHolds) {
  HoldingContext context;
  const auto nothing = [](HoldingTask&, void*) {};
  TaskPool<HoldingTask> pool(context, 1, {nothing, nothing});
  const auto held = std::make_shared<int>();
  HoldingTask& task = *pool.allocate();
  task.argument = held;
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_EQ(pool.release(task), Status());
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(pool.allocate()->argument, nullptr);
}

TEST_F(TaskPoolTest, ACallbackMayReleaseAndAllocate) {
  int submitted = 0;
  outcomes_.then = [&](FakeTask& task) {
    EXPECT_EQ(pool_->release(task), Status());
    if (++submitted > 100) return;
    FakeTask* const next = pool_->allocate();
    ASSERT_NE(next, nullptr);
    EXPECT_TRUE(context_.submit(*next).ok());
  };
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_TRUE(context_.submit(*pool_->allocate()).ok());
  context_.completions = 1000;
  for (int turns = 0; turns < 1000 && context_.in_flight() != 0; ++turns) engine_.progress();
  EXPECT_EQ(outcomes_.all.size(), 100U + kSize);
  EXPECT_EQ(pool_->available(), kSize);
}

TEST_F(TaskPoolTest, PoolsOfOneContextHaveTheirOwnCallbacks) {
  context_.stop();
  Outcomes others;
  TaskPool<FakeTask> other(context_, 1, others.callbacks());
  context_.start();
  EXPECT_TRUE(context_.submit(*pool_->allocate()).ok());
  EXPECT_TRUE(context_.submit(*other.allocate()).ok());
  context_.completions = 2;
  engine_.progress();
  EXPECT_EQ(outcomes_.all.size(), 1U);
  EXPECT_EQ(others.all.size(), 1U);
}

TEST(TaskPool, TakesOneTaskOrMoreAndBothCallbacks) {
  FakeContext context;
  Outcomes outcomes;
  using Pool = TaskPool<FakeTask>;
  Pool::Callbacks no_completion = outcomes.callbacks();
  no_completion.completed = nullptr;
  Pool::Callbacks no_failure = outcomes.callbacks();
  no_failure.failed = nullptr;
  for (const auto& [size, callbacks] :
       {std::pair{std::size_t{0}, outcomes.callbacks()}, std::pair{std::size_t{1}, no_completion},
        std::pair{std::size_t{1}, no_failure}}) {
    const std::size_t count = size;
    const Pool::Callbacks given = callbacks;
    EXPECT_EQ(thrown_by([&] { Pool(context, count, given); }).code(), ErrorCode::invalid_value);
  }
}

}  // namespace
}  // namespace offload::progress
