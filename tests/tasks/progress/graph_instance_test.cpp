#include "tasks/progress/graph_instance.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tasks/progress/graph_fixture.hpp"

namespace offload::progress {
namespace {

using core::ErrorCode;
using core::Status;

// ---- Binding

TEST_F(GraphTest, BindingTakesARunningGraphAndAnInstanceAtRest) {
  const NodeId node = graph_.add_node("node", context_);
  const NodeId call = add("call");
  GraphInstance& instance = allocate();
  FakeTask& bound = task(1);
  EXPECT_EQ(instance.bind_task(node, bound), ErrorCode::bad_state);
  EXPECT_EQ(instance.bind_data(call, nullptr), ErrorCode::bad_state);
  EXPECT_EQ(graph_.submit(instance), ErrorCode::bad_state);
  graph_.start();
  EXPECT_EQ(graph_.submit(instance), ErrorCode::invalid_value);  // the task is missing
  EXPECT_EQ(instance.state(), Task::State::idle);
  EXPECT_EQ(instance.bind_task(node, bound), Status());
  EXPECT_EQ(graph_.submit(instance), Status());
  EXPECT_EQ(instance.bind_task(node, bound), ErrorCode::bad_state);
  EXPECT_EQ(instance.bind_data(call, nullptr), ErrorCode::bad_state);
  EXPECT_EQ(graph_.submit(instance), ErrorCode::bad_state);
  EXPECT_EQ(graph_.release(instance), ErrorCode::bad_state);
  run();
  EXPECT_EQ(graph_.release(instance), Status());
  EXPECT_EQ(instance.bind_task(node, bound), ErrorCode::bad_state);
  EXPECT_EQ(graph_.submit(instance), ErrorCode::bad_state);
}

TEST_F(GraphTest, BindingTakesWhatTheNodeIs) {
  FakeContext other("other");
  TaskPool<FakeTask> others(other, 1, outcomes_.callbacks());
  const NodeId node = graph_.add_node("node", context_);
  const NodeId call = add("call");
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_EQ(instance.bind_data(node, nullptr), ErrorCode::invalid_value);
  EXPECT_EQ(instance.bind_task(call, task(1)), ErrorCode::invalid_value);
  EXPECT_EQ(instance.bind_task(NodeId{2}, task(1)), ErrorCode::invalid_value);
  EXPECT_EQ(instance.bind_task(node, *others.allocate()), ErrorCode::invalid_value);
}

// A node has a context; which of that context's pools a task is of does not matter.
TEST_F(GraphTest, BindingTakesTasksOfAnyPoolOfTheNodesContext) {
  context_.stop();
  TaskPool<FakeTask> others(context_, 1, outcomes_.callbacks());
  context_.start();
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_EQ(instance.bind_task(node, *others.allocate()), Status());
  EXPECT_EQ(graph_.submit(instance), Status());
  run();
  EXPECT_EQ(ends_.all, Lines{"ok"});
}

TEST_F(GraphTest, AnInstanceOfAnotherPoolOrGraphIsRefused) {
  graph_.add_node("node", context_);
  Graph other("other", 1, ends_.callbacks());
  other.connect(engine_);
  other.add_node("node", context_);
  Graph::Pool strangers(graph_, 1, ends_.callbacks());
  graph_.start();
  other.start();
  GraphInstance& stranger = *strangers.allocate();  // the graph has not prepared it
  EXPECT_EQ(stranger.bind_task(NodeId{0}, task(1)), ErrorCode::invalid_value);
  EXPECT_EQ(graph_.submit(stranger), ErrorCode::invalid_value);
  EXPECT_EQ(graph_.release(stranger), ErrorCode::invalid_value);
  GraphInstance& foreign = *other.allocate();
  EXPECT_EQ(foreign.bind_task(NodeId{0}, task(2)), Status());
  EXPECT_EQ(graph_.submit(foreign), ErrorCode::invalid_value);
  EXPECT_EQ(foreign.state(), Task::State::idle);
  other.stop();
}

// It is detected when the node starts: the instance fails there, and the task goes on.
TEST_F(GraphTest, ATaskThatIsAtWorkOrReleasedFailsItsNode) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  FakeTask& bound = task(1);
  GraphInstance& instance = allocate();
  EXPECT_EQ(instance.bind_task(node, bound), Status());
  context_.completions = 0;
  EXPECT_EQ(context_.submit(bound), Status());
  EXPECT_EQ(graph_.submit(instance), Status());
  run();
  EXPECT_EQ(ends_.all, Lines{"bad_state"});
  EXPECT_EQ(instance.failed_node(), node);
  context_.completions = kMany;
  run();
  EXPECT_EQ(outcomes_.all, Lines{"1 ok"});
  EXPECT_EQ(tasks_->release(bound), Status());
  EXPECT_EQ(graph_.submit(instance), Status());
  run();
  EXPECT_EQ(ends_.all, (Lines{"bad_state", "bad_state"}));
}

TEST_F(GraphTest, AnAllocatedInstanceHasNothingBound) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  EXPECT_TRUE(graph_.release(instance).ok());
  EXPECT_EQ(&allocate(), &instance);
  EXPECT_EQ(graph_.submit(instance), ErrorCode::invalid_value);
}

// ---- Failing

TEST_F(GraphTest, AFailedNodeFailsItsInstanceAlone) {
  const NodeId first = graph_.add_node("first", note_call);
  const NodeId second = graph_.add_node("second", note_call);
  graph_.add_dependency(first, second);
  graph_.start();
  Call good{&lines_, "good"};
  Call bad{&lines_, "bad", ErrorCode::bad_message};
  Call after_bad{&lines_, "after bad"};
  GraphInstance& one = allocate();
  GraphInstance& two = allocate();
  EXPECT_TRUE(one.bind_data(first, &bad).ok());
  EXPECT_TRUE(one.bind_data(second, &after_bad).ok());
  EXPECT_TRUE(two.bind_data(first, &good).ok());
  EXPECT_TRUE(two.bind_data(second, &good).ok());
  EXPECT_TRUE(graph_.submit(one).ok());
  EXPECT_TRUE(graph_.submit(two).ok());
  run();
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "after bad"), 0);
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "good"), 2);
  EXPECT_EQ(one.status(), ErrorCode::bad_message);
  EXPECT_EQ(one.failed_node(), first);
  EXPECT_EQ(two.status(), Status());

  bad.status = {};
  EXPECT_TRUE(graph_.submit(one).ok());
  run();
  EXPECT_EQ(one.status(), Status());
  EXPECT_EQ(one.failed_node(), std::nullopt);
}

TEST_F(GraphTest, AFailedInstanceEndsWhenNoTaskIsAtWorkForIt) {
  const NodeId slow = graph_.add_node("slow", context_);
  const NodeId bad = graph_.add_node("bad", note_call);
  const NodeId after_slow = graph_.add_node("after slow", note_call);
  graph_.add_dependency(slow, after_slow);
  graph_.start();
  Call call{&lines_, "bad", ErrorCode::timed_out};
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(slow, task(1)).ok());
  EXPECT_TRUE(instance.bind_data(bad, &call).ok());
  EXPECT_TRUE(instance.bind_data(after_slow, &call).ok());
  context_.completions = 0;
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(lines_, Lines{"bad"});
  EXPECT_TRUE(ends_.all.empty());
  context_.completions = 1;
  context_.outcome = ErrorCode::io_failed;  // the first error counts
  run();
  EXPECT_EQ(lines_, Lines{"bad"});
  EXPECT_EQ(ends_.all, Lines{"timed_out"});
  EXPECT_EQ(instance.failed_node(), bad);
}

TEST_F(GraphTest, AFailedTaskFailsItsInstance) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  context_.outcome = ErrorCode::driver;
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(ends_.all, Lines{"driver"});
  EXPECT_EQ(instance.failed_node(), node);
}

TEST_F(GraphTest, ATaskThatIsNotTakenFailsItsInstance) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& instance = allocate();
  FakeTask& bound = task(1);
  EXPECT_TRUE(instance.bind_task(node, bound).ok());
  context_.completions = 0;
  EXPECT_TRUE(context_.submit(bound).ok());  // in use otherwise
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(ends_.all, Lines{"bad_state"});
  context_.completions = 1;
  run();
  EXPECT_EQ(outcomes_.all, Lines{"1 ok"});  // its own callback
  context_.stop();
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(ends_.all, (Lines{"bad_state", "bad_state"}));
}

TEST_F(GraphTest, AContextThatStopsFailsTheInstances) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  context_.completions = 0;
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  context_.stop();
  EXPECT_TRUE(ends_.all.empty());  // in a turn
  run();
  EXPECT_EQ(ends_.all, Lines{"shutdown"});
}

}  // namespace
}  // namespace offload::progress
