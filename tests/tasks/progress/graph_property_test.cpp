#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tasks/progress/graph.hpp"
#include "tests/progress/context_fixture.hpp"
#include "tests/tasks/progress/graph_fixture.hpp"

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

// ---- Cycles

using Cycle = std::vector<std::uint32_t>;

TEST(FindCycle, FindsNoneWhereThereIsNone) {
  EXPECT_EQ(find_cycle({}), Cycle{});
  EXPECT_EQ(find_cycle({{}}), Cycle{});
  EXPECT_EQ(find_cycle({{1, 2}, {3}, {3}, {}}), Cycle{});
  EXPECT_EQ(find_cycle({{1, 1}, {}}), Cycle{});
}

TEST(FindCycle, TellsItInTheOrderOfWaiting) {
  EXPECT_EQ(find_cycle({{0}}), Cycle{0});
  const Cycle three = find_cycle({{}, {2}, {3}, {1, 0, 4}, {}});
  ASSERT_EQ(three.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(three[(i + 1) % 3], three[i] % 3 + 1);
}

TEST(FindCycle, LeavesOutWhatOnlyWaitsForIt) {
  const Cycle cycle = find_cycle({{}, {2}, {1, 3}, {0}});
  ASSERT_EQ(cycle.size(), 2U);
  EXPECT_EQ(std::count(cycle.begin(), cycle.end(), 1), 1);
  EXPECT_EQ(std::count(cycle.begin(), cycle.end(), 2), 1);
}

// Edges from lower numbers to higher make no cycle; one more edge back along a path makes one.
TEST(FindCycleProperty, RandomGraphs) {
  std::minstd_rand random(7);
  for (int round = 0; round < 500; ++round) {
    const auto size = static_cast<std::uint32_t>(2 + random() % 20);
    Dependents dependents(size);
    for (std::uint32_t edges = 0; edges < 2 * size; ++edges) {
      const auto from = static_cast<std::uint32_t>(random() % (size - 1));
      const auto to = from + 1 + static_cast<std::uint32_t>(random() % (size - 1 - from));
      dependents[from].push_back(to);
    }
    EXPECT_EQ(find_cycle(dependents), Cycle{});

    std::uint32_t last = static_cast<std::uint32_t>(random() % size);
    const std::uint32_t first = last;
    while (!dependents[last].empty()) last = dependents[last][random() % dependents[last].size()];
    dependents[last].push_back(first);
    const Cycle cycle = find_cycle(dependents);
    ASSERT_FALSE(cycle.empty());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto& waiting = dependents[cycle[i]];
      EXPECT_NE(std::find(waiting.begin(), waiting.end(), cycle[(i + 1) % cycle.size()]),
                waiting.end());
    }
  }
}

}  // namespace
}  // namespace offload::progress
