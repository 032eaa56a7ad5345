#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/error.hpp"
#include "progress/context.hpp"
#include "progress/task_pool.hpp"
#include "tests/progress/fake_context.hpp"
#include "tests/support/thrown.hpp"

namespace offload::progress {

/// The refusal of a call in a wrong state: its text.
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
