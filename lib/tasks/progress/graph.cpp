#include "tasks/progress/graph.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace offload::progress {

namespace {

using core::Error;
using core::ErrorCode;
using core::Status;
using Nodes = std::vector<std::uint32_t>;

/// For each node, the number of nodes that it still waits for after every node that can be done was
/// done (Kahn's algorithm). Not zero: the node is in a cycle, or waits for one.
Nodes count_unmet(const Dependents& dependents) {
  Nodes unmet(dependents.size(), 0);
  for (const Nodes& waiting : dependents) {
    for (const std::uint32_t node : waiting) ++unmet[node];
  }
  Nodes done;
  for (std::uint32_t node = 0; node < unmet.size(); ++node) {
    if (unmet[node] == 0) done.push_back(node);
  }
  while (!done.empty()) {
    const std::uint32_t node = done.back();
    done.pop_back();
    for (const std::uint32_t waiting : dependents[node]) {
      if (--unmet[waiting] == 0) done.push_back(waiting);
    }
  }
  return unmet;
}

}  // namespace

std::vector<std::uint32_t> find_cycle(const Dependents& dependents) {
  const Nodes unmet = count_unmet(dependents);
  const auto stuck =
      std::find_if(unmet.begin(), unmet.end(), [](auto count) { return count != 0; });
  if (stuck == unmet.end()) return {};
  // Each stuck node waits for another stuck node: following these edges leads into a cycle.
  Nodes waits_for(dependents.size(), 0);
  for (std::uint32_t node = 0; node < dependents.size(); ++node) {
    if (unmet[node] == 0) continue;
    for (const std::uint32_t waiting : dependents[node]) waits_for[waiting] = node;
  }
  auto at = static_cast<std::uint32_t>(stuck - unmet.begin());
  for (std::size_t steps = 0; steps < dependents.size(); ++steps) at = waits_for[at];
  Nodes cycle{at};
  for (std::uint32_t node = waits_for[at]; node != at; node = waits_for[node])
    cycle.push_back(node);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

Graph::Graph(std::string name, std::size_t instances, Pool::Callbacks callbacks)
    : Context(std::move(name)), instances_(*this, instances, callbacks) {}

Graph::~Graph() {
  if (state() == State::idle) return;
  for (GraphInstance& instance : instances_.tasks()) instance.let_go();
  end();
}

// ---- Its shape

NodeId Graph::add_node(std::string name, Context& context) {
  if (&context == this) {
    throw Error(ErrorCode::invalid_value, "graph '" + this->name() + "' cannot be its own node");
  }
  return add({std::move(name), &context, nullptr, 0});
}

NodeId Graph::add_node(std::string name, NodeCallback callback) {
  if (callback == nullptr) {
    throw Error(ErrorCode::invalid_value,
                "node '" + name + "' of graph '" + this->name() + "' needs a callback");
  }
  return add({std::move(name), nullptr, callback, 0});
}

NodeId Graph::add(Node node) {
  expect_idle("add a node");
  nodes_.push_back(std::move(node));
  dependents_.emplace_back();
  return NodeId{static_cast<std::uint32_t>(nodes_.size() - 1)};
}

void Graph::add_dependency(NodeId before, NodeId after) {
  expect_idle("add a dependency");
  const std::uint32_t from = index_of(before);
  const std::uint32_t to = index_of(after);
  dependents_[from].push_back(to);
  ++nodes_[to].dependencies;
}

std::uint32_t Graph::index_of(NodeId node) const {
  const auto index = static_cast<std::uint32_t>(node);
  if (index < nodes_.size()) return index;
  throw Error(ErrorCode::invalid_value,
              "graph '" + name() + "' has no node " + std::to_string(index));
}

void Graph::refuse_cycles() const {
  const std::vector<std::uint32_t> cycle = find_cycle(dependents_);
  if (cycle.empty()) return;
  std::string text = "graph '" + name() + "' has a cycle: ";
  for (const std::uint32_t node : cycle) text += "'" + nodes_[node].name + "' -> ";
  throw Error(ErrorCode::invalid_value, text + "'" + nodes_[cycle.front()].name + "'");
}

void Graph::refuse_other_engines() const {
  for (const Node& node : nodes_) {
    if (node.context == nullptr || node.context->engine() == engine()) continue;
    throw Error(ErrorCode::invalid_value, "node '" + node.name + "' of graph '" + name() +
                                              "': context '" + node.context->name() +
                                              "' is not on the graph's engine");
  }
}

// ---- Its instances

GraphInstance* Graph::allocate() noexcept {
  GraphInstance* const instance = instances_.allocate();
  if (instance != nullptr) instance->unbind();
  return instance;
}

Context::Step Graph::on_start() {
  if (nodes_.empty()) {
    throw Error(ErrorCode::invalid_value, "graph '" + name() + "' has no nodes");
  }
  refuse_cycles();
  refuse_other_engines();
  for (GraphInstance& instance : instances_.tasks()) instance.prepare();
  return Step::done;
}

Context::Step Graph::on_stop() noexcept {
  Step step = Step::done;
  for (Task* task = first_in_flight(); task != nullptr; task = next_in_flight(*task)) {
    auto& instance = static_cast<GraphInstance&>(*task);
    instance.fail(ErrorCode::shutdown, {});
    schedule(instance);
    if (instance.at_work_ != 0) step = Step::in_progress;
  }
  if (step == Step::done) {
    while (ready_.pop_front() != nullptr) continue;  // stopped() completes them all
  }
  return step;
}

Status Graph::on_submit(Task& task) noexcept {
  auto& instance = static_cast<GraphInstance&>(task);
  if (!instance.is_bound()) return ErrorCode::invalid_value;
  instance.begin();
  schedule(instance);
  return {};
}

bool Graph::on_poll(std::size_t most) {
  std::size_t steps = 0;
  for (; steps < most; ++steps) {
    GraphInstance* const instance = ready_.pop_front();
    if (instance == nullptr) break;
    step(*instance);
  }
  if (state() == State::stopping && in_flight() == 0) stopped();
  return steps != 0;
}

void Graph::step(GraphInstance& instance) noexcept {
  if (instance.has_node()) {
    instance.run_next_node();
    schedule(instance);
  } else if (instance.has_work()) {
    complete(instance, instance.outcome_);
  }  // else a node has failed meanwhile, and others are still running
}

void Graph::schedule(GraphInstance& instance) noexcept {
  using Ready = core::IntrusiveList<GraphInstance>;
  if (!instance.has_work() || Ready::is_linked(instance)) return;
  ready_.push_back(instance);
  request_turn();
}

core::Duration Graph::arm() {
  return ready_.empty() ? core::Duration::max() : core::Duration{};
}

}  // namespace offload::progress
