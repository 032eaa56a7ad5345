/// Contexts: what all objects that work on tasks have in common.
///
/// A context is idle, starting, running or stopping. It is configured while it is idle and
/// connected to a progress engine before it is started. All calls return DOCA_ERROR_INVALID_VALUE
/// if an argument is NULL. One thread: that of its progress engine.
#ifndef DOCA_CTX_H_
#define DOCA_CTX_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_ctx;
struct doca_gpu;

enum doca_ctx_states {
  DOCA_CTX_STATE_IDLE = 0,
  DOCA_CTX_STATE_STARTING = 1,
  DOCA_CTX_STATE_RUNNING = 2,
  DOCA_CTX_STATE_STOPPING = 3
};

/// Called after each change of state, by the call that changes it. In the call for
/// DOCA_CTX_STATE_IDLE the context may be destroyed. In that for DOCA_CTX_STATE_STOPPING a program
/// must not wait for a kernel that uses the context: its calls end after it.
typedef void (*doca_ctx_state_changed_callback_t)(const union doca_data user_data,
                                                  struct doca_ctx *ctx,
                                                  enum doca_ctx_states prev_state,
                                                  enum doca_ctx_states next_state);

/// Starts the context. DOCA_SUCCESS: it is running. DOCA_ERROR_IN_PROGRESS: it is starting, and
/// doca_pe_progress() makes it running, or idle by way of stopping if the start fails; only clients
/// and consumers of DOCA Comch do that. DOCA_ERROR_BAD_STATE if it is not idle, is connected to no
/// progress engine, lacks its configuration, or is a consumer or an Ethernet receive queue for
/// kernels whose mmap is stopped. For kernels, a context of doca_dma or doca_rdma and an Ethernet
/// queue need no progress engine; the stop of one of the first two then waits until it is idle.
doca_error_t doca_ctx_start(struct doca_ctx *ctx);
/// Stops the context. DOCA_SUCCESS: it is idle. DOCA_ERROR_IN_PROGRESS: it is stopping, because
/// tasks are in flight or not freed yet, a message of a kernel is being sent, or the call came from
/// a callback of doca_pe_progress(). Then doca_pe_progress() fails the tasks in flight with
/// DOCA_ERROR_SHUTDOWN, and makes it idle when all tasks are freed. An idle context stays idle:
/// DOCA_SUCCESS. DOCA_ERROR_NOT_CONNECTED: it is connected to no progress engine.
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);
doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);
/// The number of tasks that were submitted and whose callback has not been called yet.
doca_error_t doca_ctx_get_num_inflight_tasks(const struct doca_ctx *ctx,
                                             size_t *num_inflight_tasks);
/// Sets it to 1: every context here supports notifications of its progress engine.
doca_error_t doca_ctx_get_event_driven_supported(const struct doca_ctx *ctx,
                                                 uint8_t *event_driven_supported);
/// The data that callbacks of the context get.
doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);
doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data);
/// DOCA_ERROR_BAD_STATE if it is not idle.
doca_error_t doca_ctx_set_state_changed_cb(struct doca_ctx *ctx,
                                           doca_ctx_state_changed_callback_t callback);
/// Lets kernels of a GPU, instead of tasks, use the context: a consumer or producer of DOCA Comch,
/// one that copies memory or is for RDMA, or an Ethernet queue.
/// A server or client of it takes the call and stays as it is. DOCA_ERROR_NOT_SUPPORTED: others.
/// DOCA_ERROR_BAD_STATE if it is not idle.
doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev);
/// Starts the tasks that were submitted without DOCA_TASK_SUBMIT_FLAG_FLUSH. Does nothing for a
/// context that is not running.
void doca_ctx_flush_tasks(struct doca_ctx *ctx);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
