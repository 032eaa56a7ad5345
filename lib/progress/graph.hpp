#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/intrusive_list.hpp"
#include "progress/context.hpp"
#include "progress/cycle.hpp"
#include "progress/graph_instance.hpp"
#include "progress/task_pool.hpp"

namespace offload::progress {

/// Nodes, and which of them wait for which: run as often as there are instances, and by as many at
/// once. A node runs a task of a context, or a callback.
///
/// It is a context itself, and an instance is its task. So a sub-graph is a node like any other:
/// the inner graph is its context, and an instance of that its task.
///
/// Nodes are added while it is idle. start() refuses (Error, invalid_value) a graph without nodes,
/// nodes that wait for each other in a circle, and a node whose context is on another engine.
/// A node that fails fails its instance, with its error: no further node of that begins, and when
/// those at work have ended, the instance's callback is called. stop() does so to all instances; it
/// cannot take back a task from another context, so while one is at work the graph is stopping.
///
/// Thread rules: as Context. Contexts of nodes must outlive the graph.
class Graph final : public Context {
 public:
  using Pool = TaskPool<GraphInstance>;
  /// Runs in a turn of the engine, for one node of one instance. An error fails the instance. Must
  /// not throw.
  using NodeCallback = core::Status (*)(GraphInstance& instance, void* data);

  /// With as many instances, and what is called at the end of each. Throws Error (invalid_value).
  Graph(std::string name, std::size_t instances, Pool::Callbacks callbacks);
  /// If it is not idle, as Context's. Tasks at work for it end without a callback.
  ~Graph() override;

  // Adding throws Error: bad_state if the graph is not idle, invalid_value. Names are for errors.

  /// A node that runs a task of `context`, which must not be this graph.
  NodeId add_node(std::string name, Context& context);
  NodeId add_node(std::string name, NodeCallback callback);
  /// `after` begins when `before` has ended well.
  void add_dependency(NodeId before, NodeId after);

  /// With nothing bound. Null if all are out.
  [[nodiscard]] GraphInstance* allocate() noexcept;
  /// As TaskPool::release.
  core::Status release(GraphInstance& instance) noexcept { return instances_.release(instance); }

 private:
  friend GraphInstance;

  struct Node {
    std::string name;
    Context* context = nullptr;  ///< of its tasks; null: it runs the callback
    NodeCallback callback = nullptr;
    std::uint32_t dependencies = 0;
  };

  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(Task& task) noexcept override;
  bool on_poll(std::size_t most) override;
  // Only what is ready needs a turn; tasks at work are their contexts' to wait for.
  [[nodiscard]] Expecting expecting() const override { return Expecting::nothing; }
  core::Duration arm() override;

  NodeId add(Node node);
  [[nodiscard]] std::uint32_t index_of(NodeId node) const;
  void refuse_cycles() const;
  void refuse_other_engines() const;
  void step(GraphInstance& instance) noexcept;
  /// Sees to it that an instance that has work gets its turn.
  void schedule(GraphInstance& instance) noexcept;

  std::vector<Node> nodes_;
  Dependents dependents_;
  core::IntrusiveList<GraphInstance> ready_;  ///< instances that have work
  Pool instances_;
};

}  // namespace offload::progress
