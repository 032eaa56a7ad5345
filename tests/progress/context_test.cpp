#include "progress/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/progress/context_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::progress {
namespace {

using core::Clock;
using core::Duration;
using core::ErrorCode;
using core::Status;

// ---- Submitting

TEST_F(ContextTest, TasksAreTakenByARunningContextOnly) {
  FakeTask& task = allocate();
  EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
  EXPECT_EQ(context_.submit_unflushed(task), ErrorCode::bad_state);
  EXPECT_EQ(context_.flush(), ErrorCode::bad_state);
  context_.start();
  EXPECT_EQ(context_.submit(task), Status());
  EXPECT_EQ(task.state(), Task::State::submitted);
  context_.stop_takes_time = true;
  context_.stop();
  EXPECT_EQ(context_.submit(allocate()), ErrorCode::bad_state);
  EXPECT_EQ(context_.flush(), ErrorCode::bad_state);
  EXPECT_EQ(context_.submissions, 1);
  EXPECT_EQ(context_.flushes, 1);
  context_.stopped();
}

TEST_F(ContextTest, ATaskIsTakenOnce) {
  context_.start();
  FakeTask& task = submit();
  EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
  EXPECT_EQ(context_.in_flight(), 1U);
  context_.completions = 1;
  engine_.progress();
  EXPECT_EQ(context_.submit(task), Status());
  context_.completions = 1;
  engine_.progress();
  EXPECT_EQ(pool_->release(task), Status());
  EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
  EXPECT_EQ(outcomes_.all, (Lines{"1 ok", "1 ok"}));
}

TEST_F(ContextTest, AnothersTaskIsRefused) {
  FakeContext other;
  other.connect(engine_);
  other.start();
  EXPECT_EQ(other.submit(allocate()), ErrorCode::invalid_value);
  EXPECT_EQ(other.submissions, 0);
  other.stop();
}

TEST_F(ContextTest, ATaskThatItsContextRefusesStaysAsItWas) {
  context_.start();
  context_.refusal = ErrorCode::full;
  FakeTask& task = allocate();
  EXPECT_EQ(context_.submit(task), ErrorCode::full);
  EXPECT_EQ(task.state(), Task::State::idle);
  EXPECT_EQ(context_.in_flight(), 0U);
  EXPECT_EQ(context_.flushes, 0);
  context_.refusal = {};
  EXPECT_EQ(context_.submit(task), Status());
}

TEST_F(ContextTest, ABatchHasOneFlush) {
  context_.start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(context_.submit_unflushed(allocate()), Status());
  EXPECT_EQ(context_.flushes, 0);
  EXPECT_EQ(context_.in_flight(), 3U);
  EXPECT_EQ(context_.flush(), Status());
  EXPECT_EQ(context_.flushes, 1);
  submit();
  EXPECT_EQ(context_.flushes, 2);
}

// ---- Completing

TEST_F(ContextTest, CompletesTasksInTurnsAlone) {
  context_.start();
  context_.completions = 2;
  FakeTask& task = submit();
  submit();
  EXPECT_TRUE(outcomes_.all.empty());
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(outcomes_.all, (Lines{"1 ok", "2 ok"}));
  EXPECT_EQ(task.state(), Task::State::done);
  EXPECT_EQ(context_.in_flight(), 0U);
  EXPECT_FALSE(engine_.progress());
}

TEST_F(ContextTest, OneThatIsPolledAlwaysNeedsNoTask) {
  FakeContext always("always", Context::Turns::always);
  always.connect(engine_);
  always.start();
  EXPECT_EQ(always.polls, 0);
  always.request_turn();
  for (int i = 0; i < 3; ++i) engine_.progress();
  EXPECT_EQ(always.polls, 3);
  always.stop();
  engine_.progress();
  EXPECT_EQ(always.polls, 3);
}

TEST_F(ContextTest, AFailedTaskHasItsErrorAndTheOtherCallback) {
  context_.start();
  context_.outcome = ErrorCode::io_failed;
  context_.completions = 1;
  FakeTask& task = submit();
  engine_.progress();
  EXPECT_EQ(outcomes_.all, Lines{"1 io_failed"});
  EXPECT_EQ(task.status(), ErrorCode::io_failed);
}

TEST_F(ContextTest, RunOnceDoesItToo) {
  context_.start();
  submit(3);
  context_.completions = 3;
  EXPECT_TRUE(support::eventually([&] { return outcomes_.all.size() == 3; },
                                  [&] { engine_.run_once(Clock::now() + support::kBound); }));
}

TEST_F(ContextTest, ATaskMayBeSubmittedAgainFromItsCallback) {
  context_.start();
  outcomes_.then = [&](FakeTask& task) { EXPECT_EQ(context_.submit(task), Status()); };
  submit(3);
  context_.completions = 1000;
  for (int i = 0; context_.completions != 0 && i < 1000; ++i) engine_.progress();
  EXPECT_EQ(outcomes_.all.size(), 1000U);
  EXPECT_EQ(context_.in_flight(), 3U);
  outcomes_.then = {};
}

TEST_F(ContextTest, CompletesSoManyInATurnAndThenTheOthersHaveTheirs) {
  FakeContext other("other");
  other.connect(engine_);
  Outcomes others;
  TaskPool<FakeTask> other_pool(other, kTasks, others.callbacks());
  other.start();
  context_.start();
  submit(kTasks);
  for (std::size_t i = 0; i < kTasks; ++i) EXPECT_TRUE(other.submit(*other_pool.allocate()).ok());
  context_.completions = other.completions = kTasks;
  for (std::size_t done = 0; done < kTasks;) {
    engine_.progress();
    done = std::min(done + Context::kCompletionsAtOnce, kTasks);
    EXPECT_EQ(outcomes_.all.size(), done);
    EXPECT_EQ(others.all.size(), done);
  }
  other.stop();
}

// Each completion submits the next: that would be one turn without an end.
TEST_F(ContextTest, ATurnHasAnEndThoughEveryCallbackSubmits) {
  context_.start();
  context_.completions = 1'000'000;
  outcomes_.then = [&](FakeTask& task) { EXPECT_EQ(context_.submit(task), Status()); };
  submit();
  engine_.progress();
  EXPECT_EQ(outcomes_.all.size(), Context::kCompletionsAtOnce);
  outcomes_.then = {};
}

// ---- What an engine polls

TEST(Contexts, ThatAreIdleArePolledNeverHoweverManyThereAre) {
  constexpr std::size_t kCount = 10'000;
  Engine engine;
  std::vector<std::unique_ptr<FakeContext>> contexts;
  for (std::size_t i = 0; i < kCount; ++i) {
    contexts.push_back(std::make_unique<FakeContext>());
    contexts.back()->connect(engine);
  }
  FakeContext& busy = *contexts[kCount / 2];
  Outcomes outcomes;
  TaskPool<FakeTask> pool(busy, 1, outcomes.callbacks());
  for (auto& context : contexts) context->start();
  const auto polls = [&] {
    int sum = 0;
    for (auto& context : contexts) sum += context->polls;
    return sum;
  };
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(polls(), 0);
  EXPECT_EQ(engine.arm(), Duration::max());
  engine.disarm();

  ASSERT_TRUE(busy.submit(*pool.allocate()).ok());
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(polls(), 100);
  EXPECT_EQ(busy.polls, 100);
  busy.completions = 1;
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(outcomes.all.size(), 1U);
  EXPECT_EQ(polls(), 101);
  for (auto& context : contexts) context->stop();
}

TEST_F(ContextTest, ATaskThatIsRetiredEndsWithoutItsCallback) {
  context_.start();
  FakeTask& first = submit();
  FakeTask& second = submit();
  context_.retire(first);
  EXPECT_EQ(first.state(), Task::State::done);
  EXPECT_TRUE(first.status().ok());
  EXPECT_EQ(context_.in_flight(), 1U);
  EXPECT_EQ(context_.first_in_flight(), &second);
  EXPECT_EQ(outcomes_.all, Lines{});
  EXPECT_TRUE(context_.submit(first).ok()) << "it can be submitted again";
  EXPECT_EQ(context_.in_flight(), 2U);
}

TEST(Contexts, ATurnOnRequestIsBoundedAndTellsOfItsWork) {
  Engine engine;
  FakeContext context("told", Context::Turns::on_request);
  context.connect(engine);
  Outcomes outcomes;
  TaskPool<FakeTask> pool(context, 200, outcomes.callbacks());
  context.start();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(context.submit(*pool.allocate()).ok());
  context.completions = 200;
  context.request_turn();
  EXPECT_TRUE(engine.progress());
  EXPECT_EQ(outcomes.all.size(), Context::kCompletionsAtOnce);
  context.completions = 0;
  context.request_turn();
  EXPECT_FALSE(engine.progress());
  context.stop();
}

TEST(Contexts, ThatOthersTellAreAskedForTurnsOnRequest) {
  Engine engine;
  FakeContext context("told", Context::Turns::on_request);
  context.connect(engine);
  Outcomes outcomes;
  TaskPool<FakeTask> pool(context, 2, outcomes.callbacks());
  context.start();
  ASSERT_TRUE(context.submit(*pool.allocate()).ok());
  ASSERT_TRUE(context.submit(*pool.allocate()).ok());
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(context.polls, 0);
  EXPECT_EQ(engine.arm(), Duration::max());
  engine.disarm();

  context.complete(*context.first_in_flight(), {});
  EXPECT_EQ(outcomes.all.size(), 1U);
  context.request_turn();
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(context.polls, 1);

  context.stop_takes_time = true;
  context.stop();
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  EXPECT_EQ(context.polls, 101);
  context.stopped();
}

TEST_F(ContextTest, IsArmedWhileTasksAreInFlight) {
  context_.sleep = std::chrono::milliseconds(3);
  context_.start();
  EXPECT_EQ(engine_.arm(), Duration::max());
  engine_.disarm();
  submit();
  EXPECT_EQ(engine_.arm(), context_.sleep);
  engine_.disarm();
}

TEST_F(ContextTest, ATaskSubmittedWhileTheEngineIsArmedWakesIt) {
  context_.start();
  EXPECT_EQ(engine_.arm(), Duration::max());
  submit();
  engine_.disarm();
  EXPECT_TRUE(engine_.progress());  // the wake-up
}

}  // namespace
}  // namespace offload::progress
