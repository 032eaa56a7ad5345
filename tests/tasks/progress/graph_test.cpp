#include "tasks/progress/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/readable.hpp"
#include "tests/tasks/progress/graph_fixture.hpp"

namespace offload::progress {
namespace {

using core::ErrorCode;
using core::Status;
using support::is_readable;

// ---- Order

TEST_F(GraphTest, AChainRunsInOrder) {
  const NodeId first = graph_.add_node("first", context_);
  const NodeId second = graph_.add_node("second", note_call);
  const NodeId third = graph_.add_node("third", context_);
  graph_.add_dependency(second, third);
  graph_.add_dependency(first, second);
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_EQ(instance.bind_task(first, task(1)), Status());
  Call call{&lines_, "second", {}, [&] { EXPECT_EQ(context_.taken, std::vector{1}); }};
  EXPECT_EQ(instance.bind_data(second, &call), Status());
  EXPECT_EQ(instance.bind_task(third, task(3)), Status());
  EXPECT_EQ(graph_.submit(instance), Status());
  EXPECT_TRUE(context_.taken.empty());  // nothing runs outside of a turn
  run();
  EXPECT_EQ(lines_, Lines{"second"});
  EXPECT_EQ(context_.taken, (std::vector{1, 3}));
  EXPECT_EQ(ends_.all, Lines{"ok"});
  EXPECT_EQ(instance.state(), Task::State::done);
  EXPECT_EQ(instance.failed_node(), std::nullopt);
  EXPECT_TRUE(outcomes_.all.empty());  // the instance was told, not the tasks' pool
}

TEST_F(GraphTest, ADiamondJoinsOnce) {
  const NodeId top = graph_.add_node("top", note_call);
  const NodeId left = graph_.add_node("left", context_);
  const NodeId right = graph_.add_node("right", note_call);
  const NodeId bottom = graph_.add_node("bottom", note_call);
  for (const NodeId side : {left, right}) {
    graph_.add_dependency(top, side);
    graph_.add_dependency(side, bottom);
  }
  graph_.start();
  GraphInstance& instance = allocate();
  Call calls[] = {{&lines_, "top"}, {&lines_, "right"}, {&lines_, "bottom"}};
  EXPECT_TRUE(instance.bind_data(top, &calls[0]).ok());
  EXPECT_TRUE(instance.bind_data(right, &calls[1]).ok());
  EXPECT_TRUE(instance.bind_data(bottom, &calls[2]).ok());
  EXPECT_TRUE(instance.bind_task(left, task(1)).ok());
  context_.completions = 0;
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(lines_, (Lines{"top", "right"}));
  context_.completions = 1;
  run();
  EXPECT_EQ(lines_, (Lines{"top", "right", "bottom"}));
  EXPECT_EQ(ends_.all, Lines{"ok"});
}

TEST_F(GraphTest, ASubGraphIsANodeOfItsInstances) {
  Ends inner_ends;
  Graph inner("inner", 1, inner_ends.callbacks());
  inner.connect(engine_);
  const NodeId inside = inner.add_node("inside", note_call);
  const NodeId before = graph_.add_node("before", note_call);
  const NodeId sub = graph_.add_node("sub", inner);
  const NodeId after = graph_.add_node("after", note_call);
  graph_.add_dependency(before, sub);
  graph_.add_dependency(sub, after);
  inner.start();
  graph_.start();
  Call calls[] = {{&lines_, "before"}, {&lines_, "inside"}, {&lines_, "after"}};
  GraphInstance& part = *inner.allocate();
  EXPECT_TRUE(part.bind_data(inside, &calls[1]).ok());
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_data(before, &calls[0]).ok());
  EXPECT_TRUE(instance.bind_task(sub, part).ok());
  EXPECT_TRUE(instance.bind_data(after, &calls[2]).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(lines_, (Lines{"before", "inside", "after"}));
  EXPECT_EQ(ends_.all, Lines{"ok"});
  EXPECT_TRUE(inner_ends.all.empty());

  calls[1].status = ErrorCode::bad_message;
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(ends_.all, (Lines{"ok", "bad_message"}));
  EXPECT_EQ(instance.failed_node(), sub);
  EXPECT_EQ(part.failed_node(), inside);
  graph_.stop();
  inner.stop();
}

TEST_F(GraphTest, RunsBesideOrdinaryTasks) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  EXPECT_TRUE(context_.submit(task(2)).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  EXPECT_TRUE(context_.submit(task(3)).ok());
  run();
  EXPECT_EQ(outcomes_.all, (Lines{"2 ok", "3 ok"}));
  EXPECT_EQ(ends_.all, Lines{"ok"});
}

TEST_F(GraphTest, ManyInstancesAreInFlightAtOnce) {
  const NodeId node = graph_.add_node("node", context_);
  const NodeId after = add("after");
  graph_.add_dependency(node, after);
  graph_.start();
  context_.completions = 0;
  for (int i = 0; i < 4; ++i) {
    GraphInstance& instance = allocate();
    EXPECT_TRUE(instance.bind_task(node, task(i)).ok());
    EXPECT_TRUE(graph_.submit(instance).ok());
  }
  EXPECT_EQ(graph_.allocate(), nullptr);
  run();
  EXPECT_EQ(graph_.in_flight(), 4U);
  EXPECT_EQ(context_.in_flight(), 4U);
  context_.completions = kMany;
  run();
  EXPECT_EQ(ends_.all, Lines(4, "ok"));
}

TEST_F(GraphTest, AnInstanceMayBeSubmittedAgainFromItsEnd) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  ends_.then = [&](GraphInstance& done) {
    if (ends_.all.size() == 10) return;
    EXPECT_EQ(graph_.submit(done), Status());
  };
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(ends_.all, Lines(10, "ok"));
  EXPECT_EQ(context_.taken, std::vector<int>(10, 1));
}

TEST_F(GraphTest, ATurnTakesSoManyStepsAndNoMore) {
  const std::size_t length = 3 * Context::kCompletionsAtOnce;
  NodeId last = graph_.add_node("first", note_call);
  std::vector<NodeId> nodes{last};
  for (std::size_t i = 1; i < length; ++i) {
    nodes.push_back(graph_.add_node("next", note_call));
    graph_.add_dependency(last, nodes.back());
    last = nodes.back();
  }
  graph_.start();
  GraphInstance& instance = allocate();
  Call call{&lines_, "step"};
  for (const NodeId node : nodes) EXPECT_TRUE(instance.bind_data(node, &call).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  for (std::size_t turns = 1; turns <= 3; ++turns) {
    EXPECT_EQ(engine_.arm(), core::Duration{});  // there is work: no sleep
    engine_.disarm();
    engine_.progress();
    EXPECT_EQ(lines_.size(), turns * Context::kCompletionsAtOnce);
  }
}

TEST_F(GraphTest, WaitingForATaskIsNotPolledFor) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  context_.completions = 0;
  context_.sleep = core::Duration::max();
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(engine_.arm(), core::Duration::max());
  EXPECT_FALSE(engine_.progress());
  context_.stop();  // ends the task, and so there is an instance to end
  EXPECT_TRUE(is_readable(engine_.fd(), 0));
  engine_.disarm();
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(ends_.all, Lines{"shutdown"});
}

TEST_F(GraphTest, AnInstanceSubmittedWhileTheEngineIsArmedWakesIt) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  context_.completions = 0;
  context_.sleep = core::Duration::max();
  for (int i = 0; i < 2; ++i) {
    GraphInstance& instance = allocate();
    EXPECT_TRUE(instance.bind_task(node, task(i)).ok());
    EXPECT_EQ(engine_.arm(), core::Duration::max());
    EXPECT_FALSE(is_readable(engine_.fd(), 0));
    EXPECT_TRUE(graph_.submit(instance).ok());  // the second finds the graph active already
    EXPECT_TRUE(is_readable(engine_.fd(), 0));
    engine_.disarm();
    run();
  }
}

}  // namespace
}  // namespace offload::progress
