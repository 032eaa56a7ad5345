#include "tasks/progress/graph.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doca/guard.hpp"
#include "doca/include/doca_graph.h"
#include "doca/pe.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::ErrorCode;
using offload::core::Status;
using offload::progress::Context;
using offload::progress::Graph;
using offload::progress::GraphInstance;
using offload::progress::NodeId;

struct doca_graph_node {
  doca_graph* graph = nullptr;
  std::uint32_t index = 0;
  doca_ctx* ctx = nullptr;  ///< null: of `callback`
  doca_graph_user_node_cb_t callback = nullptr;
};

struct doca_graph_instance {
  /// The call of a user node in this instance.
  struct UserCall {
    doca_graph_user_node_cb_t callback = nullptr;
    void* cookie = nullptr;
  };

  [[nodiscard]] bool in_flight() const noexcept {
    return instance->state() == offload::progress::Task::State::submitted;
  }
  /// Takes the tasks of all nodes from the program, also those that have not begun or have ended.
  void own_tasks() noexcept {
    for (doca_task* task : tasks) {
      if (task != nullptr) task->in_graph = true;
    }
  }
  void let_go() noexcept {
    for (doca_task* task : tasks) {
      if (task == nullptr) continue;
      task->in_graph = false;
      task->status = to_doca(task->task->status());
      task->let_go();
    }
  }

  doca_graph* graph = nullptr;
  GraphInstance* instance = nullptr;
  std::vector<doca_task*> tasks;  ///< by node; null: none, or a user node
  std::vector<UserCall> calls;    ///< by node
  doca_data user_data{};
};

/// A progress::Graph, which exists while the graph is started, and what it is made of.
struct doca_graph {
  explicit doca_graph(doca_pe& engine) : pe(&engine) { ++pe->graphs; }
  doca_graph& operator=(doca_graph&&) = delete;
  ~doca_graph() {
    for (const doca_graph_node& node : nodes) {
      if (node.ctx != nullptr) --node.ctx->graph_nodes;
    }
    --pe->graphs;
  }

  void build();
  doca_graph_node& add_node(doca_ctx* ctx, doca_graph_user_node_cb_t callback) {
    doca_graph_node& node = nodes.emplace_back(
        doca_graph_node{this, static_cast<std::uint32_t>(nodes.size()), ctx, callback});
    if (ctx != nullptr) ++ctx->graph_nodes;
    return node;
  }
  static Status call_user(GraphInstance& instance, void* data) noexcept;
  static void ended(GraphInstance& instance, void* graph) noexcept;

  doca_pe* pe;
  std::optional<Graph> graph;
  std::deque<doca_graph_node> nodes;  ///< whose elements stay where they are
  std::vector<std::pair<std::uint32_t, std::uint32_t>> dependencies;
  doca_graph_completion_cb_t succeeded = nullptr;
  doca_graph_completion_cb_t failed = nullptr;
  std::uint32_t most_instances = 0;
  std::size_t instances = 0;  ///< that exist
  doca_data user_data{};
};

void doca_graph::build() {
  graph.emplace("graph", most_instances, Graph::Pool::Callbacks{&ended, &ended, this});
  for (const doca_graph_node& node : nodes) {
    const std::string name = "node " + std::to_string(node.index);
    if (node.ctx != nullptr) {
      graph->add_node(name, node.ctx->context());
    } else {
      graph->add_node(name, &call_user);
    }
  }
  for (const auto& [from, to] : dependencies) graph->add_dependency(NodeId{from}, NodeId{to});
  graph->connect(pe->engine);
  graph->start();
}

Status doca_graph::call_user(GraphInstance& /*instance*/, void* data) noexcept {
  const auto& call = *static_cast<doca_graph_instance::UserCall*>(data);
  return call.callback(call.cookie) == DOCA_SUCCESS ? Status() : ErrorCode::unexpected;
}

void doca_graph::ended(GraphInstance& instance, void* graph) noexcept {
  auto& self = *static_cast<doca_graph*>(graph);
  auto& run = *static_cast<doca_graph_instance*>(instance.user_data);
  run.let_go();
  (instance.status().ok() ? self.succeeded : self.failed)(&run, run.user_data, self.user_data);
}

doca_error_t doca_graph_create(doca_pe* pe, doca_graph** graph) {
  if (any_null(pe, graph)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *graph = new doca_graph(*pe); });
}

doca_error_t doca_graph_destroy(doca_graph* graph) {
  if (graph == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (graph->instances != 0) return DOCA_ERROR_IN_USE;
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  delete graph;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_start(doca_graph* graph) {
  if (graph == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (graph->graph || graph->most_instances == 0) return DOCA_ERROR_BAD_STATE;
  const doca_error_t result = guarded(__func__, [&] { graph->build(); });
  if (result != DOCA_SUCCESS) graph->graph.reset();
  return result;
}

doca_error_t doca_graph_stop(doca_graph* graph) {
  if (graph == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!graph->graph) return DOCA_SUCCESS;
  if (graph->instances != 0) return DOCA_ERROR_IN_USE;
  // In a turn the library's graph may be what is being polled.
  if (graph->pe->in_turn) return DOCA_ERROR_NOT_PERMITTED;
  return guarded(__func__, [&] {
    graph->graph->stop();
    graph->graph.reset();
  });
}

doca_error_t doca_graph_node_create_from_ctx(doca_graph* graph, const doca_ctx* ctx,
                                             doca_graph_node** node) {
  if (any_null(graph, ctx, node)) return DOCA_ERROR_INVALID_VALUE;
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  // The const_cast is safe: the program made the context without const.
  return guarded(__func__, [&] { *node = &graph->add_node(const_cast<doca_ctx*>(ctx), nullptr); });
}

doca_error_t doca_graph_node_create_from_user(doca_graph* graph, doca_graph_user_node_cb_t callback,
                                              doca_graph_node** node) {
  if (any_null(graph, node) || callback == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] { *node = &graph->add_node(nullptr, callback); });
}

doca_error_t doca_graph_add_dependency(doca_graph* graph, const doca_graph_node* from,
                                       doca_graph_node* to) {
  if (any_null(graph, from, to) || from->graph != graph || to->graph != graph) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  return guarded(__func__, [&] { graph->dependencies.emplace_back(from->index, to->index); });
}

doca_error_t doca_graph_set_conf(doca_graph* graph,
                                 doca_graph_completion_cb_t graph_instance_success_cb,
                                 doca_graph_completion_cb_t graph_instance_failure_cb,
                                 uint32_t num_instances) {
  if (graph == nullptr || graph_instance_success_cb == nullptr ||
      graph_instance_failure_cb == nullptr || num_instances == 0) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  graph->succeeded = graph_instance_success_cb;
  graph->failed = graph_instance_failure_cb;
  graph->most_instances = num_instances;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_set_user_data(doca_graph* graph, doca_data user_data) {
  if (graph == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (graph->graph) return DOCA_ERROR_BAD_STATE;
  graph->user_data = user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_get_user_data(const doca_graph* graph, doca_data* user_data) {
  if (any_null(graph, user_data)) return DOCA_ERROR_INVALID_VALUE;
  *user_data = graph->user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_create(const doca_graph* of, doca_graph_instance** instance) {
  if (any_null(of, instance)) return DOCA_ERROR_INVALID_VALUE;
  if (!of->graph) return DOCA_ERROR_BAD_STATE;
  auto* const graph = const_cast<doca_graph*>(of);  // the program made it without const
  return guarded(__func__, [&] {
    auto made = std::make_unique<doca_graph_instance>();
    made->graph = graph;
    made->tasks.resize(graph->nodes.size());
    made->calls.resize(graph->nodes.size());
    made->instance = graph->graph->allocate();
    if (made->instance == nullptr) throw std::bad_alloc();
    made->instance->user_data = made.get();
    for (const doca_graph_node& node : graph->nodes) {
      if (node.callback == nullptr) continue;
      made->calls[node.index].callback = node.callback;
      made->instance->bind_data(NodeId{node.index}, &made->calls[node.index]);
    }
    ++graph->instances;
    *instance = made.release();
  });
}

doca_error_t doca_graph_instance_destroy(doca_graph_instance* instance) {
  if (instance == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (instance->in_flight()) return DOCA_ERROR_IN_USE;
  static_cast<void>(instance->graph->graph->release(*instance->instance));
  --instance->graph->instances;
  delete instance;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_set_ctx_node_data(doca_graph_instance* instance,
                                                   const doca_graph_node* node, doca_task* task) {
  if (any_null(instance, node, task) || node->graph != instance->graph || task->task == nullptr) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  const Status status = instance->instance->bind_task(NodeId{node->index}, *task->task);
  if (status.ok()) instance->tasks[node->index] = task;
  return to_doca(status);
}

doca_error_t doca_graph_instance_set_user_node_data(doca_graph_instance* instance,
                                                    const doca_graph_node* node, void* data) {
  if (any_null(instance, node) || node->graph != instance->graph || node->callback == nullptr) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (instance->in_flight()) return DOCA_ERROR_BAD_STATE;
  instance->calls[node->index].cookie = data;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_set_user_data(doca_graph_instance* instance, doca_data user_data) {
  if (instance == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (instance->in_flight()) return DOCA_ERROR_IN_USE;
  instance->user_data = user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_get_user_data(const doca_graph_instance* instance,
                                               doca_data* user_data) {
  if (any_null(instance, user_data)) return DOCA_ERROR_INVALID_VALUE;
  *user_data = instance->user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_submit(doca_graph_instance* instance) {
  if (instance == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (instance->in_flight()) return DOCA_ERROR_IN_USE;
  for (const doca_task* task : instance->tasks) {
    if (task != nullptr && (task->task == nullptr || task->in_flight())) {
      return DOCA_ERROR_BAD_STATE;
    }
  }
  Status status;
  for (doca_task* task : instance->tasks) {
    if (task != nullptr && status.ok()) status = task->prepare();
  }
  if (status.ok()) status = instance->graph->graph->submit(*instance->instance);
  if (status.ok()) {
    instance->own_tasks();
  } else {
    for (doca_task* task : instance->tasks) {
      if (task != nullptr) task->let_go();
    }
  }
  return to_doca(status);
}
