#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "tasks/progress/graph.hpp"
#include "tests/progress/context_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::progress {

inline constexpr std::size_t kMany = 1'000'000;

/// The outcomes of instances, in order: "ok", "shutdown", ...
struct Ends {
  Graph::Pool::Callbacks callbacks() {
    const auto note = [](GraphInstance& instance, void* ends) {
      auto& self = *static_cast<Ends*>(ends);
      self.all.emplace_back(instance.status().ok() ? "ok" : name_of(instance.status().error()));
      if (self.then) self.then(instance);
    };
    return {note, note, this};
  }
  Lines all;
  std::function<void(GraphInstance&)> then;
};

/// The action of a callback node; the node's data.
struct Call {
  Lines* lines;
  std::string name;
  core::Status status{};
  std::function<void()> then{};
};

inline core::Status note_call(GraphInstance&, void* data) {
  const Call& call = *static_cast<Call*>(data);
  call.lines->push_back(call.name);
  if (call.then) call.then();
  return call.status;
}

inline core::Status do_nothing(GraphInstance&, void*) {
  return {};
}

/// A context that completes every task, and a graph on the same engine.
class GraphTest : public testing::Test {
 protected:
  GraphTest() {
    context_.connect(engine_);
    context_.completions = kMany;
    tasks_.emplace(context_, 100, outcomes_.callbacks());
    graph_.connect(engine_);
    context_.start();
  }
  void TearDown() override {
    context_.completions = kMany;
    if (graph_.state() == Context::State::running) graph_.stop();
    run();
    EXPECT_EQ(graph_.state(), Context::State::idle);
    if (context_.state() == Context::State::running) context_.stop();
  }

  void run() {
    for (int turns = 0; turns < 1000; ++turns) engine_.progress();
  }
  GraphInstance& allocate() {
    GraphInstance* const instance = graph_.allocate();
    EXPECT_NE(instance, nullptr);
    return *instance;
  }
  FakeTask& task(int number) {
    FakeTask* const task = tasks_->allocate();
    EXPECT_NE(task, nullptr);
    task->number = number;
    return *task;
  }
  /// Adds a node that does nothing.
  NodeId add(const std::string& name) { return graph_.add_node(name, do_nothing); }
  std::string refusal_to_start() {
    const core::Error error = support::thrown_by([&] { graph_.start(); });
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
    EXPECT_EQ(graph_.state(), Context::State::idle);
    return error.what();
  }

  Engine engine_;
  FakeContext context_{"copier"};
  Outcomes outcomes_;
  std::optional<TaskPool<FakeTask>> tasks_;
  Ends ends_;
  Lines lines_;
  Graph graph_{"g", 4, ends_.callbacks()};
};

}  // namespace offload::progress
