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

/// The identifier of a node, as Graph::add_node returns it.
enum class NodeId : std::uint32_t {};

/// One run of a graph: what is bound to each node, and the progress made. It is a task of the
/// graph, so a node of an outer graph can run it.
///
/// Allocate it from its graph, bind, submit. Bindings hold until it is released; what is bound must
/// live as long. On the thread of the graph's engine.
class GraphInstance final : public Task, public core::ListNode<GraphInstance> {
 public:
  using ContextType = Graph;

  /// Binds the task that `node` runs, which must be of that node's context. While the instance is
  /// submitted it owns the task: the task's completion is reported to it, not to the pool's
  /// callbacks. invalid_value if there is no such node or the task is of another context; bad_state
  /// if the instance is in flight or released, or the graph is not running.
  core::Status bind_task(NodeId node, Task& task) noexcept;
  /// Binds the data that the callback of `node` gets; null by default. Errors as bind_task.
  core::Status bind_data(NodeId node, void* data) noexcept;

  /// The first node that failed; none if the instance failed because the graph stopped.
  [[nodiscard]] std::optional<NodeId> failed_node() const noexcept { return failed_node_; }

 private:
  friend Graph;

  /// The state of a node in this run.
  struct Run {
    GraphInstance* instance = nullptr;
    std::uint32_t node = 0;
    std::uint32_t unmet = 0;  ///< dependencies that have not succeeded yet
    Task* task = nullptr;
    void* data = nullptr;
    Receiver receiver{};  ///< of the task's completion
  };

  /// Allocates the state of all nodes.
  void prepare();
  void unbind() noexcept;
  [[nodiscard]] bool is_bound() const noexcept;
  void begin() noexcept;
  /// Returns whether there is work: a node to run, or the instance's completion to report.
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] bool has_node() const noexcept;
  void run_next_node() noexcept;
  /// Starts no more nodes; the instance completes when none is running.
  void fail(core::Status status, std::optional<NodeId> node) noexcept;
  /// Detaches the tasks in flight, which then complete without a callback.
  void let_go() noexcept;

  [[nodiscard]] Graph& graph() const noexcept;
  [[nodiscard]] core::Status check_bind(NodeId node, bool takes_task) const noexcept;
  void node_ended(const Run& run, core::Status status) noexcept;
  static void task_ended(Task& task, void* run) noexcept;

  std::vector<Run> runs_;             ///< by node
  std::vector<std::uint32_t> ready_;  ///< nodes that may start, in order; each is in it once a run
  std::size_t next_ready_ = 0;        ///< index in ready_ of the next node to start
  std::size_t at_work_ = 0;           ///< nodes that started and have not completed
  std::size_t unfinished_ = 0;        ///< nodes that have not succeeded yet
  core::Status outcome_;
  std::optional<NodeId> failed_node_;
};

}  // namespace offload::progress
