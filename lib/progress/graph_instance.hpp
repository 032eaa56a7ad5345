#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/intrusive_list.hpp"
#include "core/status.hpp"
#include "progress/task.hpp"

namespace offload::progress {

class Graph;

/// A node of one graph, as Graph::add_node named it.
enum class NodeId : std::uint32_t {};

/// One run of a graph: what each node works on, and how far it has come. A task of the graph, so
/// also what the node of an outer graph runs.
///
/// Allocate it from its graph, bind, submit; bindings hold until it is released, and what is bound
/// must live as long. On the thread of the graph's engine.
class GraphInstance final : public Task, public core::ListNode<GraphInstance> {
 public:
  using ContextType = Graph;

  /// The task that `node` runs, of that node's context; it belongs to the instance while that is
  /// submitted. Of its end the instance is told, not its pool's callbacks. invalid_value if that
  /// is no such node or another context's task, bad_state if the instance is in flight or released
  /// or the graph does not run.
  core::Status bind_task(NodeId node, Task& task) noexcept;
  /// What the callback of `node` is given, null before. Errors as above.
  core::Status bind_data(NodeId node, void* data) noexcept;

  /// Once it has failed: the first node that did. None if it was the graph that stopped.
  [[nodiscard]] std::optional<NodeId> failed_node() const noexcept { return failed_node_; }

 private:
  friend Graph;

  /// A node in this run.
  struct Run {
    GraphInstance* instance = nullptr;
    std::uint32_t node = 0;
    std::uint32_t unmet = 0;  ///< dependencies that have not ended well
    Task* task = nullptr;
    void* data = nullptr;
    Receiver receiver{};  ///< of the task's end
  };

  /// Makes room for all nodes.
  void prepare();
  void unbind() noexcept;
  [[nodiscard]] bool is_bound() const noexcept;
  void begin() noexcept;
  /// Whether there is something to do now: a node to run, or the end to tell.
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] bool has_node() const noexcept;
  void run_next_node() noexcept;
  /// Runs no more nodes: it ends when none is at work.
  void fail(core::Status status, std::optional<NodeId> node) noexcept;
  /// The tasks at work shall not tell it of their end.
  void let_go() noexcept;

  [[nodiscard]] Graph& graph() const noexcept;
  [[nodiscard]] core::Status check_bind(NodeId node, bool takes_task) const noexcept;
  [[nodiscard]] core::Status submit_task(Run& run, Context& context) noexcept;
  void node_ended(const Run& run, core::Status status) noexcept;
  static void task_ended(Task& task, void* run) noexcept;

  std::vector<Run> runs_;             ///< by node
  std::vector<std::uint32_t> ready_;  ///< nodes whose turn has come, each of them once a run
  std::size_t next_ready_ = 0;        ///< of ready_, the first that was not run
  std::size_t at_work_ = 0;           ///< nodes that began and have not ended
  std::size_t unfinished_ = 0;        ///< nodes that have not ended well
  core::Status outcome_;
  std::optional<NodeId> failed_node_;
};

}  // namespace offload::progress
