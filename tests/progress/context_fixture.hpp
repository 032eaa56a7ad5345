#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "progress/context.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/thrown.hpp"

namespace offload::progress {

class FakeContext;

class FakeTask final : public Task {
 public:
  using ContextType = FakeContext;
  int number = 0;
};

/// Behaves as the test sets it up, and counts the calls.
class FakeContext final : public Context {
 public:
  explicit FakeContext(std::string name = "fake", Turns turns = Turns::while_in_flight)
      : Context(std::move(name), turns) {}
  ~FakeContext() override {
    if (ends_itself) end();
  }

  using Context::complete;
  using Context::first_in_flight;
  using Context::request_turn;
  using Context::retire;
  using Context::started;
  using Context::stopped;

  // Its behaviour.
  bool start_takes_time = false;
  bool stop_takes_time = false;
  bool start_fails = false;
  bool ends_itself = false;
  core::Status refusal;         ///< of submissions
  core::Status outcome;         ///< of tasks
  std::size_t completions = 0;  ///< the number to complete, in as many turns as it takes
  core::Duration sleep{};       ///< the result of arm()

  std::function<void(FakeTask&)> on_take;
  std::function<void(FakeTask&)> on_complete;
  std::function<void()> on_stopping;

  // The calls so far.
  int submissions = 0;
  std::vector<int> taken;  ///< numbers of the tasks
  int flushes = 0;
  int polls = 0;
  int starts = 0;
  int stops = 0;
  int* abandons = nullptr;  ///< outlives it

 private:
  Step on_start() override {
    ++starts;
    if (start_fails) throw core::Error(core::ErrorCode::driver, "no such luck");
    return start_takes_time ? Step::in_progress : Step::done;
  }
  Step on_stop() noexcept override {
    ++stops;
    if (on_stopping) on_stopping();
    return stop_takes_time ? Step::in_progress : Step::done;
  }
  core::Status on_submit(Task& task) noexcept override {
    ++submissions;
    if (!refusal.ok()) return refusal;
    auto& fake = static_cast<FakeTask&>(task);
    taken.push_back(fake.number);
    if (on_take) on_take(fake);
    return {};
  }
  void on_abandon() noexcept override {
    if (abandons != nullptr) ++*abandons;
  }
  void on_flush() noexcept override { ++flushes; }
  bool on_poll(std::size_t most) override {
    ++polls;
    std::size_t done = 0;
    for (; done < most && completions != 0; ++done) {
      auto* const task = static_cast<FakeTask*>(first_in_flight());
      if (task == nullptr) break;
      --completions;
      if (on_complete) on_complete(*task);
      complete(*task, outcome);
    }
    return done != 0;
  }
  core::Duration arm() override { return sleep; }
};

/// The outcomes of tasks, in order: "1 ok", "2 shutdown".
class Outcomes {
 public:
  [[nodiscard]] TaskPool<FakeTask>::Callbacks callbacks() {
    return {[](FakeTask& task, void* outcomes) {
              EXPECT_TRUE(task.status().ok());
              static_cast<Outcomes*>(outcomes)->add(task, "ok");
            },
            [](FakeTask& task, void* outcomes) {
              ASSERT_FALSE(task.status().ok());
              static_cast<Outcomes*>(outcomes)->add(task, name_of(task.status().error()));
            },
            this};
  }

  std::vector<std::string> all;
  std::function<void(FakeTask&)> then;  ///< done inside of each callback

 private:
  void add(FakeTask& task, std::string_view outcome) {
    EXPECT_EQ(task.state(), Task::State::done);
    all.push_back(std::to_string(task.number) + " " + std::string(outcome));
    if (then) then(task);
  }
};

using Lines = std::vector<std::string>;

/// Returns the text of the refusal of a call in a wrong state.
template <class Action>
std::string bad_state(Action action) {
  const core::Error error = support::thrown_by(action);
  EXPECT_EQ(error.code(), core::ErrorCode::bad_state);
  return error.what();
}

/// A context on an engine, and a pool of its tasks.
class ContextTest : public testing::Test {
 protected:
  static constexpr std::size_t kTasks = 200;

  ContextTest() {
    context_.connect(engine_);
    pool_.emplace(context_, kTasks, outcomes_.callbacks());
  }
  void TearDown() override {
    if (context_.state() == Context::State::running) context_.stop();
  }

  void note_states() {
    context_.set_state_callback(
        [](Context&, Context::State from, Context::State to, void* lines) {
          static_cast<Lines*>(lines)->push_back(std::string(name_of(from)) + " > " +
                                                std::string(name_of(to)));
        },
        &changes_);
  }
  FakeTask& allocate() {
    FakeTask* const task = pool_->allocate();
    EXPECT_NE(task, nullptr);
    task->number = ++number_;
    return *task;
  }
  FakeTask& submit() {
    FakeTask& task = allocate();
    EXPECT_EQ(context_.submit(task), core::Status());
    return task;
  }
  void submit(int count) {
    for (int i = 0; i < count; ++i) submit();
  }

  Lines changes_;
  Engine engine_;
  FakeContext context_;
  Outcomes outcomes_;
  std::optional<TaskPool<FakeTask>> pool_;
  int number_ = 0;
};

}  // namespace offload::progress
