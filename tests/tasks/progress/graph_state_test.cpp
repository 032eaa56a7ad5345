#include <gtest/gtest.h>

#include "tasks/progress/graph.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"
#include "tests/tasks/progress/graph_fixture.hpp"

namespace offload::progress {
namespace {

using core::ErrorCode;
using core::Status;
using support::thrown_by;
using State = Context::State;

// ---- What start refuses

TEST_F(GraphTest, ACycleIsRefusedByName) {
  const NodeId a = add("a");
  graph_.add_dependency(a, a);
  EXPECT_EQ(refusal_to_start(), "graph 'g' has a cycle: 'a' -> 'a'");
}

TEST_F(GraphTest, ACycleOfTwoIsRefusedByName) {
  add("alone");
  const NodeId a = add("a");
  const NodeId b = add("b");
  graph_.add_dependency(a, b);
  graph_.add_dependency(b, a);
  const std::string text = refusal_to_start();
  EXPECT_TRUE(text.ends_with(": 'a' -> 'b' -> 'a'") || text.ends_with(": 'b' -> 'a' -> 'b'"))
      << text;
}

TEST_F(GraphTest, ALongCycleIsRefusedByName) {
  const NodeId a = add("a");
  const NodeId b = add("b");
  const NodeId c = add("c");
  const NodeId after = add("after");
  graph_.add_dependency(a, b);
  graph_.add_dependency(b, c);
  graph_.add_dependency(c, a);
  graph_.add_dependency(c, after);
  const std::string text = refusal_to_start();
  for (const char* name : {"'a'", "'b'", "'c'"}) EXPECT_NE(text.find(name), std::string::npos);
  EXPECT_EQ(text.find("'after'"), std::string::npos) << text;
}

TEST_F(GraphTest, AGraphWithoutNodesIsRefused) {
  EXPECT_EQ(refusal_to_start(), "graph 'g' has no nodes");
  add("one");
  graph_.start();
}

TEST_F(GraphTest, AContextOfAnotherEngineIsRefused) {
  Engine other_engine;
  FakeContext other("other");
  graph_.add_node("node", other);
  const std::string text = "node 'node' of graph 'g': context 'other' is not on the graph's engine";
  EXPECT_EQ(refusal_to_start(), text);
  other.connect(other_engine);
  EXPECT_EQ(refusal_to_start(), text);
}

TEST_F(GraphTest, ShapesThatCannotBeAreRefusedAtOnce) {
  Graph::NodeCallback none = nullptr;
  const NodeId a = add("a");
  for (const core::Error& error :
       {thrown_by([&] { graph_.add_node("self", graph_); }),
        thrown_by([&] { graph_.add_node("none", none); }),
        thrown_by([&] { graph_.add_dependency(a, NodeId{1}); }),
        thrown_by([&] { graph_.add_dependency(NodeId{1}, a); }),
        thrown_by([&] { Graph("no instances", 0, ends_.callbacks()); })}) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_value) << error.what();
  }
  graph_.start();
}

// ---- Calls in a wrong state

TEST_F(GraphTest, ItsShapeIsFixedWhileItRuns) {
  const NodeId a = add("a");
  graph_.start();
  for (const core::Error& error :
       {thrown_by([&] { add("b"); }), thrown_by([&] { graph_.add_node("b", context_); }),
        thrown_by([&] { graph_.add_dependency(a, a); }), thrown_by([&] { graph_.start(); })}) {
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_NE(std::string(error.what()).find("'g' is running: cannot "), std::string::npos);
  }
}

TEST_F(GraphTest, NothingIsTakenWhileItIsStopping) {
  const NodeId node = graph_.add_node("node", context_);
  graph_.start();
  GraphInstance& at_work = allocate();
  GraphInstance& other = allocate();
  EXPECT_EQ(at_work.bind_task(node, task(1)), Status());
  EXPECT_EQ(other.bind_task(node, task(2)), Status());
  context_.completions = 0;
  EXPECT_EQ(graph_.submit(at_work), Status());
  run();
  graph_.stop();
  ASSERT_EQ(graph_.state(), State::stopping);
  for (const core::Error& error :
       {thrown_by([&] { add("b"); }), thrown_by([&] { graph_.add_dependency(node, node); }),
        thrown_by([&] { graph_.start(); })}) {
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_NE(std::string(error.what()).find("'g' is stopping: cannot "), std::string::npos);
  }
  EXPECT_EQ(graph_.submit(other), ErrorCode::bad_state);
  EXPECT_EQ(other.bind_task(node, task(3)), ErrorCode::bad_state);
  EXPECT_EQ(graph_.release(at_work), ErrorCode::bad_state);
  EXPECT_EQ(graph_.release(other), Status());
}

TEST_F(GraphTest, MayGrowBetweenRuns) {
  const NodeId a = graph_.add_node("a", note_call);
  graph_.start();
  graph_.stop();
  const NodeId b = graph_.add_node("b", note_call);
  graph_.add_dependency(b, a);
  graph_.start();
  Call calls[] = {{&lines_, "a"}, {&lines_, "b"}};
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_data(a, &calls[0]).ok());
  EXPECT_TRUE(instance.bind_data(b, &calls[1]).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  run();
  EXPECT_EQ(lines_, (Lines{"b", "a"}));
}

// ---- Stopping

TEST_F(GraphTest, StopFailsInstancesThatHaveNotBegun) {
  add("node");
  graph_.start();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(graph_.submit(allocate()).ok());
  graph_.stop();
  EXPECT_EQ(graph_.state(), State::idle);
  EXPECT_EQ(ends_.all, Lines(3, "shutdown"));
  graph_.start();
  run();
  EXPECT_EQ(ends_.all.size(), 3U);
}

TEST_F(GraphTest, StopWaitsForTheTasksAtWork) {
  const NodeId first = graph_.add_node("first", context_);
  const NodeId second = graph_.add_node("second", note_call);
  graph_.add_dependency(first, second);
  graph_.start();
  context_.completions = 0;
  Call call{&lines_, "second"};
  GraphInstance& one = allocate();
  GraphInstance& two = allocate();
  for (GraphInstance* instance : {&one, &two}) {
    EXPECT_TRUE(instance->bind_task(first, task(1)).ok());
    EXPECT_TRUE(instance->bind_data(second, &call).ok());
    EXPECT_TRUE(graph_.submit(*instance).ok());
  }
  run();
  graph_.stop();
  EXPECT_EQ(graph_.state(), State::stopping);
  EXPECT_EQ(graph_.submit(allocate()), ErrorCode::bad_state);
  run();
  EXPECT_TRUE(ends_.all.empty());
  context_.completions = 1;
  run();
  EXPECT_EQ(ends_.all, Lines{"shutdown"});
  EXPECT_EQ(graph_.state(), State::stopping);
  context_.completions = 1;
  run();
  EXPECT_EQ(ends_.all, Lines(2, "shutdown"));
  EXPECT_EQ(graph_.state(), State::idle);
  EXPECT_EQ(one.failed_node(), std::nullopt);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(GraphTest, ANodeMayStopTheGraph) {
  const NodeId node = graph_.add_node("node", note_call);
  const NodeId after = graph_.add_node("after", note_call);
  graph_.add_dependency(node, after);
  graph_.start();
  Call call{&lines_, "node", {}, [&] { graph_.stop(); }};
  Call never{&lines_, "after"};
  GraphInstance& instance = allocate();
  EXPECT_TRUE(instance.bind_data(node, &call).ok());
  EXPECT_TRUE(instance.bind_data(after, &never).ok());
  EXPECT_TRUE(graph_.submit(instance).ok());
  GraphInstance& other = allocate();
  EXPECT_TRUE(other.bind_data(node, &never).ok());
  EXPECT_TRUE(graph_.submit(other).ok());
  run();
  EXPECT_EQ(lines_, Lines{"node"});
  EXPECT_EQ(ends_.all, Lines(2, "shutdown"));
  EXPECT_EQ(graph_.state(), State::idle);
}

TEST_F(GraphTest, TheEndOfAnInstanceMayStopTheGraph) {
  add("node");
  graph_.start();
  ends_.then = [&](GraphInstance& instance) {
    if (graph_.state() == State::running) graph_.stop();
    EXPECT_EQ(graph_.release(instance), Status());
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(graph_.submit(allocate()).ok());
  run();
  EXPECT_EQ(ends_.all, (Lines{"ok", "shutdown", "shutdown"}));
  EXPECT_EQ(graph_.state(), State::idle);
}

TEST_F(GraphTest, AGraphThatEndsTooEarlyLetsGoOfItsTasks) {
  const support::LogCapture log;
  {
    Graph early("early", 2, ends_.callbacks());
    early.connect(engine_);
    const NodeId node = early.add_node("node", context_);
    early.start();
    context_.completions = 0;
    GraphInstance& instance = *early.allocate();
    EXPECT_TRUE(instance.bind_task(node, task(1)).ok());
    EXPECT_TRUE(early.submit(instance).ok());
    GraphInstance& waiting = *early.allocate();
    EXPECT_TRUE(waiting.bind_task(node, task(2)).ok());
    EXPECT_TRUE(early.submit(waiting).ok());
    run();
    EXPECT_EQ(context_.in_flight(), 2U);
  }
  EXPECT_EQ(ends_.all, Lines(2, "shutdown"));
  EXPECT_TRUE(
      log.has("context 'early' is destroyed while the context is running, with 2 tasks in flight"));
  context_.completions = kMany;
  run();
  EXPECT_EQ(context_.in_flight(), 0U);
  EXPECT_TRUE(outcomes_.all.empty());
  add("node");
}

}  // namespace
}  // namespace offload::progress
