// A separate program, as it counts every allocation in its process.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/progress/graph.hpp"
#include "tests/support/operator_new.hpp"

namespace offload::progress {
namespace {

class PlainContext;

class PlainTask final : public Task {
 public:
  using ContextType = PlainContext;
};

/// Completes each task that it gets; the fakes of the other tests allocate.
class PlainContext final : public Context {
 public:
  PlainContext() : Context("plain") {}

 private:
  core::Status on_submit(Task&) noexcept override { return {}; }
  bool on_poll(std::size_t most) override {
    Task* task = nullptr;
    std::size_t done = 0;
    for (; done < most && (task = first_in_flight()) != nullptr; ++done) complete(*task, {});
    return done != 0;
  }
};

class AllocationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!support::kOwnOperatorNew) GTEST_SKIP() << "a sanitizer allocates";
    context_.connect(engine_);
  }
  [[nodiscard]] static std::uint64_t count() { return support::allocations.count; }

  Engine engine_;
  PlainContext context_;
};

TEST_F(AllocationTest, TheCountCounts) {
  const std::uint64_t before = count();
  const auto number = std::make_unique<std::uint64_t>(1);
  EXPECT_EQ(count(), before + *number);
}

TEST_F(AllocationTest, TasksTakeNone) {
  constexpr int kTasks = 100;
  int completed = 0;
  const auto add = [](PlainTask&, void* sum) { ++*static_cast<int*>(sum); };
  TaskPool<PlainTask> pool(context_, kTasks, {add, add, &completed});
  PlainTask* tasks[kTasks]{};
  const std::uint64_t before = count();
  context_.start();
  for (int round = 0; round < 10; ++round) {
    for (PlainTask*& task : tasks) task = pool.allocate();
    for (PlainTask* task : tasks) EXPECT_TRUE(context_.submit_unflushed(*task).ok());
    EXPECT_TRUE(context_.flush().ok());
    while (context_.in_flight() != 0) engine_.progress();
    engine_.arm();
    engine_.disarm();
    engine_.run_once(core::Clock::now());
    for (PlainTask* task : tasks) EXPECT_TRUE(pool.release(*task).ok());
  }
  for (PlainTask*& task : tasks) EXPECT_TRUE(context_.submit(*(task = pool.allocate())).ok());
  context_.stop();
  EXPECT_EQ(count(), before);
  EXPECT_EQ(completed, 11 * kTasks);
}

TEST_F(AllocationTest, GraphsTakeNoneOnceStarted) {
  int ended = 0;
  const auto add = [](GraphInstance&, void* sum) { ++*static_cast<int*>(sum); };
  const auto none = [](PlainTask&, void*) {};
  TaskPool<PlainTask> tasks(context_, 2, {none, none});
  Graph graph("graph", 1, {add, add, &ended});
  graph.connect(engine_);
  const NodeId first = graph.add_node("first", context_);
  const NodeId second =
      graph.add_node("second", [](GraphInstance&, void*) { return core::Status(); });
  const NodeId third = graph.add_node("third", context_);
  graph.add_dependency(first, second);
  graph.add_dependency(second, third);
  context_.start();
  graph.start();
  PlainTask* const bound[] = {tasks.allocate(), tasks.allocate()};
  const std::uint64_t before = count();
  for (int round = 0; round < 10; ++round) {
    GraphInstance& instance = *graph.allocate();
    EXPECT_TRUE(instance.bind_task(first, *bound[0]).ok());
    EXPECT_TRUE(instance.bind_task(third, *bound[1]).ok());
    EXPECT_TRUE(graph.submit(instance).ok());
    while (graph.in_flight() != 0) engine_.progress();
    EXPECT_TRUE(graph.release(instance).ok());
  }
  EXPECT_EQ(count(), before);
  EXPECT_EQ(ended, 10);
  graph.stop();
  context_.stop();
}

}  // namespace
}  // namespace offload::progress
