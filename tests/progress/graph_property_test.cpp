#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "progress/graph.hpp"
#include "tests/progress/context_fixture.hpp"
#include "tests/progress/graph_fixture.hpp"

namespace offload::progress {
namespace {

constexpr int kRuns = 3;  ///< of a graph at once

/// When a node of a run began and ended, on a clock that ticks with every event of the test.
struct Span {
  int* clock = nullptr;
  int began = 0;
  int ended = 0;

  void begin() {
    EXPECT_EQ(began, 0) << "a node began twice";
    began = ++*clock;
  }
  void end() { ended = ++*clock; }
};

core::Status note_span(GraphInstance&, void* data) {
  auto& span = *static_cast<Span*>(data);
  span.begin();
  span.end();
  return {};
}

/// A random graph of tasks and callbacks, and some runs of it at once.
class RandomGraph {
 public:
  explicit RandomGraph(std::minstd_rand& random) : random_(random) {
    context_.on_take = [](FakeTask& task) { static_cast<Span*>(task.user_data)->begin(); };
    context_.on_complete = [](FakeTask& task) { static_cast<Span*>(task.user_data)->end(); };
    context_.connect(engine_);
    graph_.connect(engine_);
    tasks_.emplace(context_, kRuns * kMostNodes, outcomes_.callbacks());
    context_.start();
    add_nodes();
    graph_.start();
    for (auto& spans : runs_) submit(spans);
  }
  ~RandomGraph() {
    graph_.stop();
    context_.stop();
  }
  RandomGraph(const RandomGraph&) = delete;
  RandomGraph& operator=(const RandomGraph&) = delete;

  void run() {
    for (int turns = 0; turns < 1000 && graph_.in_flight() != 0; ++turns) {
      context_.completions = random_() % 3;
      engine_.progress();
    }
  }

  void check() const {
    EXPECT_EQ(ends_.all, Lines(kRuns, "ok"));
    for (const auto& spans : runs_) {
      for (const Span& span : spans) EXPECT_NE(span.ended, 0);
      for (const auto& [before, after] : edges_) EXPECT_LT(spans[before].ended, spans[after].began);
    }
  }

 private:
  static constexpr std::size_t kMostNodes = 12;

  void add_nodes() {
    const std::size_t size = 1 + random_() % kMostNodes;
    for (std::size_t node = 0; node < size; ++node) {
      is_task_.push_back(random_() % 2 == 0);
      nodes_.push_back(is_task_.back() ? graph_.add_node("task", context_)
                                       : graph_.add_node("callback", note_span));
      for (std::size_t before = 0; before < node; ++before) {
        if (random_() % 3 != 0) continue;
        graph_.add_dependency(nodes_[before], nodes_[node]);
        edges_.emplace_back(before, node);
      }
    }
  }

  void submit(std::vector<Span>& spans) {
    spans.resize(nodes_.size(), Span{&clock_});
    GraphInstance& instance = *graph_.allocate();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (is_task_[node]) {
        FakeTask& task = *tasks_->allocate();
        task.user_data = &spans[node];
        EXPECT_TRUE(instance.bind_task(nodes_[node], task).ok());
      } else {
        EXPECT_TRUE(instance.bind_data(nodes_[node], &spans[node]).ok());
      }
    }
    EXPECT_TRUE(graph_.submit(instance).ok());
  }

  std::minstd_rand& random_;
  int clock_ = 0;
  Engine engine_;
  FakeContext context_;
  Outcomes outcomes_;
  std::optional<TaskPool<FakeTask>> tasks_;
  Ends ends_;
  Graph graph_{"random", kRuns, ends_.callbacks()};
  std::vector<NodeId> nodes_;
  std::vector<bool> is_task_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;
  std::vector<Span> runs_[kRuns];
};

TEST(GraphProperty, EveryNodeRunsOnceAndAfterThoseItWaitsFor) {
  std::minstd_rand random(11);
  for (int round = 0; round < 300; ++round) {
    RandomGraph graph(random);
    graph.run();
    graph.check();
    if (HasFailure()) FAIL() << "in round " << round;
  }
}

}  // namespace
}  // namespace offload::progress
