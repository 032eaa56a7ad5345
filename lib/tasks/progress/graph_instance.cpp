#include "tasks/progress/graph_instance.hpp"

#include "tasks/progress/graph.hpp"

namespace offload::progress {

using core::ErrorCode;
using core::Status;

Graph& GraphInstance::graph() const noexcept {
  return static_cast<Graph&>(context());
}

Status GraphInstance::bind_task(NodeId node, Task& task) noexcept {
  if (const Status status = check_bind(node, true); !status.ok()) return status;
  const auto index = static_cast<std::uint32_t>(node);
  if (&task.context() != graph().nodes_[index].context) return ErrorCode::invalid_value;
  runs_[index].task = &task;
  return {};
}

Status GraphInstance::bind_data(NodeId node, void* data) noexcept {
  if (const Status status = check_bind(node, false); !status.ok()) return status;
  runs_[static_cast<std::uint32_t>(node)].data = data;
  return {};
}

Status GraphInstance::check_bind(NodeId node, bool takes_task) const noexcept {
  const bool is_owned = state() == State::idle || state() == State::done;
  if (!is_owned || graph().state() != Context::State::running) return ErrorCode::bad_state;
  const auto index = static_cast<std::uint32_t>(node);
  if (index >= runs_.size()) return ErrorCode::invalid_value;
  if (takes_task != (graph().nodes_[index].context != nullptr)) return ErrorCode::invalid_value;
  return {};
}

// ---- For the graph

void GraphInstance::prepare() {
  const std::size_t nodes = graph().nodes_.size();
  runs_.resize(nodes);
  ready_.reserve(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    runs_[node].instance = this;
    runs_[node].node = node;
    runs_[node].receiver = {task_ended, &runs_[node]};
  }
}

void GraphInstance::unbind() noexcept {
  for (Run& run : runs_) {
    run.task = nullptr;
    run.data = nullptr;
  }
}

bool GraphInstance::is_bound() const noexcept {
  if (runs_.size() != graph().nodes_.size()) return false;  // from a pool other than the graph's
  for (const Run& run : runs_) {
    if (graph().nodes_[run.node].context != nullptr && run.task == nullptr) return false;
  }
  return true;
}

void GraphInstance::begin() noexcept {
  ready_.clear();
  next_ready_ = 0;
  at_work_ = 0;
  unfinished_ = runs_.size();
  outcome_ = {};
  failed_node_.reset();
  for (Run& run : runs_) {
    run.unmet = graph().nodes_[run.node].dependencies;
    if (run.unmet == 0) ready_.push_back(run.node);
  }
}

bool GraphInstance::has_work() const noexcept {
  if (!outcome_.ok()) return at_work_ == 0;
  return has_node() || unfinished_ == 0;
}

bool GraphInstance::has_node() const noexcept {
  return outcome_.ok() && next_ready_ < ready_.size();
}

void GraphInstance::run_next_node() noexcept {
  Run& run = runs_[ready_[next_ready_++]];
  const Graph::Node& node = graph().nodes_[run.node];
  ++at_work_;  // so that a callback that stops the graph does not complete this instance meanwhile
  if (node.context == nullptr) return node_ended(run, node.callback(*this, run.data));
  const Status status = node.context->submit(*run.task);
  if (!status.ok()) return node_ended(run, status);
  run.task->receiver_ = &run.receiver;  // not too late, as a task never completes inside submit
}

void GraphInstance::task_ended(Task& task, void* run) noexcept {
  const Run& ended = *static_cast<Run*>(run);
  ended.instance->node_ended(ended, task.status());
  ended.instance->graph().schedule(*ended.instance);
}

void GraphInstance::node_ended(const Run& run, Status status) noexcept {
  --at_work_;
  if (!status.ok()) return fail(status, NodeId{run.node});
  --unfinished_;
  for (const std::uint32_t waiting : graph().dependents_[run.node]) {
    if (--runs_[waiting].unmet == 0) ready_.push_back(waiting);  // prepare() reserved
  }
}

void GraphInstance::fail(Status status, std::optional<NodeId> node) noexcept {
  if (!outcome_.ok()) return;
  outcome_ = status;
  failed_node_ = node;
}

void GraphInstance::let_go() noexcept {
  static constexpr Receiver kNobody{[](Task&, void*) {}, nullptr};
  for (Run& run : runs_) {
    if (run.task != nullptr && run.task->receiver_ == &run.receiver) run.task->receiver_ = &kNobody;
  }
  at_work_ = 0;
}

}  // namespace offload::progress
