#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/intrusive_list.hpp"
#include "progress/context.hpp"
#include "progress/task_pool.hpp"
#include "tasks/progress/graph_instance.hpp"

namespace offload::progress {

/// The edges of a graph: for each node, the nodes that wait for it.
using Dependents = std::vector<std::vector<std::uint32_t>>;

/// The nodes of a cycle, each waiting for the one before it and the first for the last; empty if
/// the graph has no cycle.
std::vector<std::uint32_t> find_cycle(const Dependents& dependents);

/// A dependency graph of tasks. A node runs a task of a context, or a callback, after the nodes
/// that it depends on. A GraphInstance is one run of the graph; several may be in flight at once.
///
/// A graph is a context and an instance is its task. So a sub-graph is a node like any other: its
/// context is the inner graph, and its task an instance of that.
///
/// Nodes are added while the graph is idle. start() throws Error (invalid_value) for a graph
/// without nodes, for a cycle, and for a node whose context is on another engine. A node that fails
/// makes its instance fail with its error: no further node of the instance starts, and the instance
/// completes when its running nodes have. stop() fails all instances in the same way; it cannot
/// withdraw a task from another context, so the graph is stopping while such a task is in flight.
///
/// Thread rules: as Context. The contexts of nodes must outlive the graph.
class Graph final : public Context {
 public:
  using Pool = TaskPool<GraphInstance>;
  /// The work of a callback node, called in a turn of the engine. An error fails the instance. It
  /// must not throw. `data`: as bound to the instance.
  using NodeCallback = core::Status (*)(GraphInstance& instance, void* data);

  /// `instances`: how many may exist at once. `callbacks`: called when one completes. Throws Error
  /// (invalid_value).
  Graph(std::string name, std::size_t instances, Pool::Callbacks callbacks);
  /// Ends as Context does. Tasks in flight for its nodes complete without a callback.
  ~Graph() override;

  // These throw Error: bad_state if the graph is not idle, invalid_value. `name`: for error
  // messages.

  /// Adds a node that runs a task of `context`, which must not be this graph.
  NodeId add_node(std::string name, Context& context);
  NodeId add_node(std::string name, NodeCallback callback);
  /// Makes `after` start only when `before` has succeeded.
  void add_dependency(NodeId before, NodeId after);

  /// An instance with nothing bound; null if all are allocated.
  [[nodiscard]] GraphInstance* allocate() noexcept;
  /// As TaskPool::release.
  core::Status release(GraphInstance& instance) noexcept { return instances_.release(instance); }

 private:
  friend GraphInstance;

  struct Node {
    std::string name;
    Context* context = nullptr;  ///< of its task; null: it runs `callback`
    NodeCallback callback = nullptr;
    std::uint32_t dependencies = 0;
  };

  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(Task& task) noexcept override;
  bool on_poll(std::size_t most) override;
  // A graph has work only for ready instances; the contexts of running tasks wait for those.
  [[nodiscard]] Expecting expecting() const override { return Expecting::nothing; }
  core::Duration arm() override;

  NodeId add(Node node);
  [[nodiscard]] std::uint32_t index_of(NodeId node) const;
  void refuse_cycles() const;
  void refuse_other_engines() const;
  void step(GraphInstance& instance) noexcept;
  /// Queues an instance that has work for the next poll.
  void schedule(GraphInstance& instance) noexcept;

  std::vector<Node> nodes_;
  Dependents dependents_;
  core::IntrusiveList<GraphInstance> ready_;  ///< instances that have work
  Pool instances_;
};

}  // namespace offload::progress
