/// Graphs: tasks of contexts and callbacks that run in an order.
///
/// Its life: create, add nodes and dependencies, set the configuration, start; then create
/// instances, set the data of their nodes and submit them. All calls return
/// DOCA_ERROR_INVALID_VALUE if an argument is NULL, or is not of the same graph. One thread: that of
/// the progress engine.
#ifndef DOCA_GRAPH_H_
#define DOCA_GRAPH_H_

#include <stdint.h>

#include "doca_ctx.h"
#include "doca_error.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_graph;
struct doca_graph_node;
/// A run of a graph.
struct doca_graph_instance;

/// The work of a user node. An error fails the instance.
typedef doca_error_t (*doca_graph_user_node_cb_t)(void *cookie);
typedef void (*doca_graph_completion_cb_t)(struct doca_graph_instance *graph_instance,
                                           union doca_data instance_user_data,
                                           union doca_data graph_user_data);

doca_error_t doca_graph_create(struct doca_pe *pe, struct doca_graph **graph);
/// DOCA_ERROR_BAD_STATE if it is started, DOCA_ERROR_IN_USE while instances exist.
doca_error_t doca_graph_destroy(struct doca_graph *graph);
/// Checks the graph. DOCA_ERROR_BAD_STATE if it is started or lacks its configuration,
/// DOCA_ERROR_INVALID_VALUE without nodes, for a cycle, and for a context of another engine.
doca_error_t doca_graph_start(struct doca_graph *graph);
/// Does nothing if it is stopped. DOCA_ERROR_IN_USE while instances exist, DOCA_ERROR_NOT_PERMITTED
/// in a callback of doca_pe_progress().
doca_error_t doca_graph_stop(struct doca_graph *graph);

/// These return DOCA_ERROR_BAD_STATE if the graph is started.

/// Adds a node that runs a task of `ctx`.
doca_error_t doca_graph_node_create_from_ctx(struct doca_graph *graph,
                                             const struct doca_ctx *ctx,
                                             struct doca_graph_node **node);
/// Adds a node that calls `callback`.
doca_error_t doca_graph_node_create_from_user(struct doca_graph *graph,
                                              doca_graph_user_node_cb_t callback,
                                              struct doca_graph_node **node);
/// Makes `to` run only after `from` has succeeded.
doca_error_t doca_graph_add_dependency(struct doca_graph *graph, const struct doca_graph_node *from,
                                       struct doca_graph_node *to);
/// Sets how many instances may exist, and the callbacks for their ends.
doca_error_t doca_graph_set_conf(struct doca_graph *graph,
                                 doca_graph_completion_cb_t graph_instance_success_cb,
                                 doca_graph_completion_cb_t graph_instance_failure_cb,
                                 uint32_t num_instances);
doca_error_t doca_graph_set_user_data(struct doca_graph *graph, union doca_data user_data);

/// Returns the data in any state.
doca_error_t doca_graph_get_user_data(const struct doca_graph *graph, union doca_data *user_data);

/// DOCA_ERROR_BAD_STATE if the graph is not started, DOCA_ERROR_NO_MEMORY if all instances exist.
doca_error_t doca_graph_instance_create(const struct doca_graph *graph,
                                        struct doca_graph_instance **instance);
/// DOCA_ERROR_IN_USE if it is in flight.
doca_error_t doca_graph_instance_destroy(struct doca_graph_instance *instance);
/// Sets the task that a node runs, until it is set again. While the instance is in flight, the task
/// is not the program's, and its end is the node's: its callbacks are not called, and its failure
/// fails the instance without stopping the context. DOCA_ERROR_BAD_STATE if the instance is in
/// flight, DOCA_ERROR_INVALID_VALUE for a task of another context.
doca_error_t doca_graph_instance_set_ctx_node_data(struct doca_graph_instance *instance,
                                                   const struct doca_graph_node *node,
                                                   struct doca_task *task);
/// Sets what the callback of a node gets. DOCA_ERROR_BAD_STATE if the instance is in flight.
doca_error_t doca_graph_instance_set_user_node_data(struct doca_graph_instance *instance,
                                                    const struct doca_graph_node *node, void *data);
/// DOCA_ERROR_IN_USE if it is in flight.
doca_error_t doca_graph_instance_set_user_data(struct doca_graph_instance *instance,
                                               union doca_data user_data);
doca_error_t doca_graph_instance_get_user_data(const struct doca_graph_instance *instance,
                                               union doca_data *user_data);
/// DOCA_ERROR_IN_USE if it is in flight, DOCA_ERROR_BAD_STATE if a task is in flight or freed,
/// DOCA_ERROR_INVALID_VALUE if a node has no task, and the errors of doca_task_submit() for invalid
/// arguments of a task.
doca_error_t doca_graph_instance_submit(struct doca_graph_instance *instance);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
