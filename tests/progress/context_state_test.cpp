#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "progress/context.hpp"
#include "tests/progress/context_fixture.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::progress {
namespace {

using core::ErrorCode;
using core::Status;
using support::thrown_by;
using State = Context::State;

// ---- States

TEST_F(ContextTest, StartsAndStopsAndStartsAgain) {
  note_states();
  EXPECT_EQ(context_.state(), State::idle);
  for (int i = 1; i <= 2; ++i) {
    context_.start();
    EXPECT_EQ(context_.state(), State::running);
    context_.stop();
    EXPECT_EQ(context_.state(), State::idle);
    EXPECT_EQ(context_.starts, i);
    EXPECT_EQ(context_.stops, i);
  }
  const Lines once{"idle > starting", "starting > running", "running > stopping",
                   "stopping > idle"};
  Lines twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(changes_, twice);
}

TEST(Context, CallsInAWrongStateNameContextAndState) {
  Engine engine;
  FakeContext context("the copier");
  EXPECT_EQ(bad_state([&] { context.start(); }),
            "context 'the copier' is not connected to an engine: cannot start");
  EXPECT_EQ(bad_state([&] { context.stop(); }), "context 'the copier' is idle: cannot stop");
  EXPECT_EQ(context.engine(), nullptr);
  context.connect(engine);
  EXPECT_EQ(context.engine(), &engine);
  EXPECT_EQ(bad_state([&] { context.connect(engine); }),
            "context 'the copier' is connected: cannot connect to an engine");
  context.start();
  EXPECT_EQ(bad_state([&] { context.start(); }), "context 'the copier' is running: cannot start");
  EXPECT_EQ(bad_state([&] { context.set_state_callback(nullptr, nullptr); }),
            "context 'the copier' is running: cannot set the state callback");
  Outcomes outcomes;
  EXPECT_EQ(bad_state([&] { TaskPool<FakeTask> pool(context, 1, outcomes.callbacks()); }),
            "context 'the copier' is running: cannot get a task pool");
  context.stop();
  EXPECT_EQ(bad_state([&] { context.stop(); }), "context 'the copier' is idle: cannot stop");
}

TEST_F(ContextTest, AStartMayTakeTime) {
  context_.start_takes_time = true;
  context_.start();
  EXPECT_EQ(context_.state(), State::starting);
  EXPECT_NE(bad_state([&] { context_.start(); }).find("is starting: cannot start"),
            std::string::npos);
  EXPECT_EQ(context_.submit(allocate()), ErrorCode::bad_state);
  engine_.progress();
  EXPECT_EQ(context_.polls, 1);  // it may have to look whether it has started
  context_.started();
  EXPECT_EQ(context_.state(), State::running);
  engine_.progress();
  engine_.progress();
  EXPECT_EQ(context_.polls, 2);  // the last look
  submit();
}

TEST_F(ContextTest, NothingIsTakenOrChangedWhileItStartsOrStops) {
  context_.start_takes_time = context_.stop_takes_time = true;
  FakeTask& task = allocate();
  const auto expect_refusals = [&](const std::string& state) {
    EXPECT_EQ(name_of(context_.state()), state);
    EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
    EXPECT_EQ(context_.submit_unflushed(task), ErrorCode::bad_state);
    EXPECT_EQ(context_.flush(), ErrorCode::bad_state);
    EXPECT_EQ(bad_state([&] { context_.set_state_callback(nullptr, nullptr); }),
              "context 'fake' is " + state + ": cannot set the state callback");
    EXPECT_EQ(bad_state([&] { TaskPool<FakeTask> pool(context_, 1, outcomes_.callbacks()); }),
              "context 'fake' is " + state + ": cannot get a task pool");
    EXPECT_EQ(bad_state([&] { context_.connect(engine_); }),
              "context 'fake' is connected: cannot connect to an engine");
    EXPECT_EQ(task.state(), Task::State::idle);
  };
  context_.start();
  expect_refusals("starting");
  context_.started();
  context_.stop();
  expect_refusals("stopping");
  context_.stopped();
}

TEST_F(ContextTest, AStartThatFailsLeavesItIdle) {
  note_states();
  context_.start_fails = true;
  EXPECT_EQ(thrown_by([&] { context_.start(); }).code(), ErrorCode::driver);
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(changes_, (Lines{"idle > starting", "starting > idle"}));
  context_.start_fails = false;
  context_.start();
  EXPECT_EQ(context_.state(), State::running);
}

TEST_F(ContextTest, AStartMayFailLater) {
  note_states();
  context_.start_takes_time = true;
  context_.start();
  context_.stopped();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(changes_, (Lines{"idle > starting", "starting > idle"}));
  engine_.progress();
  EXPECT_EQ(context_.polls, 0);
}

TEST_F(ContextTest, MayBeStoppedWhileItIsStarting) {
  context_.start_takes_time = true;
  context_.start();
  context_.stop();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(context_.stops, 1);
  context_.started();  // what was on its way
  EXPECT_EQ(context_.state(), State::idle);
}

TEST_F(ContextTest, TheStateCallbackMayStopItBeforeItHasBegun) {
  context_.set_state_callback(
      [](Context& context, State, State to, void*) {
        if (to == State::starting) context.stop();
      },
      nullptr);
  context_.start();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(context_.starts, 0);
}

TEST_F(ContextTest, TheStateCallbackMaySubmitAndStartAgain) {
  struct Again {
    FakeTask* task;
    bool started_again;
  } again{&allocate(), false};
  context_.set_state_callback(
      [](Context& context, State, State to, void* user_data) {
        auto& data = *static_cast<Again*>(user_data);
        if (to == State::running && !data.started_again) {
          EXPECT_EQ(context.submit(*data.task), Status());
        }
        if (to == State::idle && !std::exchange(data.started_again, true)) context.start();
      },
      &again);
  context_.start();
  EXPECT_EQ(context_.in_flight(), 1U);
  context_.stop();
  EXPECT_EQ(outcomes_.all, Lines{"1 shutdown"});
  EXPECT_EQ(context_.state(), State::running);
  context_.stop();
}

// ---- Stopping

TEST_F(ContextTest, StopFailsEveryTaskInFlightOnce) {
  context_.start();
  submit(3);
  FakeTask& kept = allocate();
  context_.stop();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"1 shutdown", "2 shutdown", "3 shutdown"}));
  EXPECT_EQ(context_.in_flight(), 0U);
  EXPECT_EQ(kept.state(), Task::State::idle);
  EXPECT_EQ(pool_->release(kept), Status());
  engine_.progress();
  EXPECT_EQ(context_.polls, 0);
}

TEST_F(ContextTest, StopFromACompletionFailsTheOthers) {
  context_.start();
  submit(4);
  context_.completions = 4;
  outcomes_.then = [&](FakeTask& task) {
    if (task.number == 2) context_.stop();
  };
  engine_.progress();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"1 ok", "2 ok", "3 shutdown", "4 shutdown"}));
}

TEST_F(ContextTest, StopFromAFailureFailsTheOthersOnce) {
  context_.start();
  submit(3);
  context_.completions = 1;
  context_.outcome = ErrorCode::driver;
  outcomes_.then = [&](FakeTask&) {
    if (context_.state() != State::idle) context_.stop();  // again and again, on the first to fail
  };
  engine_.progress();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"1 driver", "2 shutdown", "3 shutdown"}));
  EXPECT_EQ(context_.stops, 1);
}

TEST_F(ContextTest, TasksThatStopFailsMayBeReleasedButNotSubmitted) {
  context_.start();
  submit(3);
  outcomes_.then = [&](FakeTask& task) {
    EXPECT_EQ(context_.submit(task), ErrorCode::bad_state);
    EXPECT_EQ(pool_->release(task), Status());
  };
  context_.stop();
  EXPECT_EQ(outcomes_.all.size(), 3U);
  EXPECT_EQ(pool_->available(), kTasks);
}

TEST_F(ContextTest, AStopMayTakeTimeInWhichTasksEndAsTheyDo) {
  context_.stop_takes_time = true;
  context_.start();
  submit(3);
  context_.stop();
  EXPECT_EQ(context_.state(), State::stopping);
  context_.stop();  // goes on
  EXPECT_EQ(context_.stops, 1);
  EXPECT_NE(bad_state([&] { context_.start(); }).find("is stopping: cannot start"),
            std::string::npos);
  context_.completions = 1;
  engine_.progress();
  EXPECT_EQ(outcomes_.all, Lines{"1 ok"});
  context_.stopped();
  EXPECT_EQ(context_.state(), State::idle);
  EXPECT_EQ(outcomes_.all, (Lines{"1 ok", "2 shutdown", "3 shutdown"}));
}

TEST_F(ContextTest, AStopThatTakesTimeIsPolledThoughNothingIsInFlight) {
  context_.stop_takes_time = true;
  context_.start();
  context_.stop();
  engine_.progress();
  engine_.progress();
  EXPECT_EQ(context_.polls, 2);
  context_.stopped();
  engine_.progress();
  EXPECT_EQ(context_.polls, 2);
}

TEST_F(ContextTest, StopWithinALimitRunsTurnsUntilItHasStopped) {
  context_.stop_within(std::chrono::seconds(60));  // it is idle
  EXPECT_EQ(context_.stops, 0);
  context_.stop_takes_time = true;
  context_.start();
  submit(3);
  context_.completions = 3;
  context_.stop_within(std::chrono::milliseconds(20));
  EXPECT_EQ(context_.state(), State::stopping) << "the limit is over";
  EXPECT_EQ(outcomes_.all, (Lines{"1 ok", "2 ok", "3 ok"}));
  context_.stopped();
}

// ---- Ending too early

/// A context that runs, with two tasks in flight; its pool stays when it ends.
struct Early {
  explicit Early(Engine& engine) {
    context->connect(engine);
    context->set_state_callback(
        [](Context&, State, State to, void* names) {
          static_cast<Lines*>(names)->emplace_back(name_of(to));
        },
        &states);
    pool.emplace(*context, 2, outcomes.callbacks());
    context->start();
    EXPECT_TRUE(context->submit(*pool->allocate()).ok());
    EXPECT_TRUE(context->submit(*pool->allocate()).ok());
  }
  Outcomes outcomes;
  Lines states;  ///< each that it has taken
  std::unique_ptr<FakeContext> context = std::make_unique<FakeContext>("early");
  std::optional<TaskPool<FakeTask>> pool;
};

TEST(ContextThatEnds, LogsAndFailsWhatIsInFlight) {
  const support::LogCapture log;
  Engine engine;
  Early early(engine);
  early.context.reset();
  EXPECT_EQ(early.outcomes.all, (Lines{"0 shutdown", "0 shutdown"}));
  EXPECT_TRUE(log.has(
      "error: context 'early' is destroyed while the context is running, with 2 tasks in flight"));
  EXPECT_EQ(early.states, (Lines{"starting", "running", "stopping", "idle"}));
  engine.progress();
}

TEST(ContextThatEnds, IsAskedToStopIfItSaysSo) {
  for (const bool takes_time : {false, true}) {
    const support::LogCapture log;
    Engine engine;
    Early early(engine);
    int abandons = 0;
    early.context->ends_itself = true;
    early.context->abandons = &abandons;
    early.context->stop_takes_time = takes_time;
    early.context.reset();
    EXPECT_EQ(early.outcomes.all, (Lines{"0 shutdown", "0 shutdown"}));
    EXPECT_EQ(early.states, (Lines{"starting", "running", "stopping", "idle"}));
    EXPECT_EQ(abandons, takes_time ? 1 : 0) << "what takes time is given up";
    EXPECT_EQ(log.text(),
              "error: context 'early' is destroyed while the context is running, with 2 tasks in "
              "flight\n");
  }
}

TEST(ContextThatEnds, MayHaveStoppedBeforeItIsAbandoned) {
  const support::LogCapture log;
  Engine engine;
  Early early(engine);
  int abandons = 0;
  early.context->ends_itself = early.context->stop_takes_time = true;
  early.context->abandons = &abandons;
  early.context->on_stopping = [context = early.context.get()] { context->stopped(); };
  early.context.reset();
  EXPECT_EQ(early.states, (Lines{"starting", "running", "stopping", "idle"}));
  EXPECT_EQ(abandons, 0);
}

TEST(ContextThatEnds, SaysNothingIfItIsIdle) {
  for (const bool itself : {false, true}) {
    const support::LogCapture log;
    Engine engine;
    Early early(engine);
    early.context->ends_itself = itself;
    early.context->stop();
    early.states.clear();
    early.context.reset();
    EXPECT_EQ(log.text(), "");
    EXPECT_EQ(early.states, Lines{});
  }
}

TEST(ContextThatEnds, MayBeStoppingAlready) {
  const support::LogCapture log;
  Engine engine;
  Early early(engine);
  early.context->stop_takes_time = true;
  early.context->stop();
  early.context.reset();
  EXPECT_EQ(early.outcomes.all.size(), 2U);
  EXPECT_EQ(early.states, (Lines{"starting", "running", "stopping", "idle"}));
  EXPECT_TRUE(log.has("is destroyed while the context is stopping"));
}

TEST(ContextThatEnds, APoolWithTasksInFlightStopsIt) {
  const support::LogCapture log;
  Engine engine;
  Early early(engine);
  early.pool.reset();
  EXPECT_EQ(early.outcomes.all, (Lines{"0 shutdown", "0 shutdown"}));
  EXPECT_EQ(early.context->state(), State::idle);
  EXPECT_TRUE(
      log.has("error: a task pool of context 'early' is destroyed while the context is running"));
}

}  // namespace
}  // namespace offload::progress
