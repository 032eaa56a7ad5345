/// Progress engines, which give contexts their turns, and tasks, the work of contexts.
///
/// Callbacks of tasks are called from doca_pe_progress() only. A callback may submit, free and
/// allocate tasks and stop contexts. All calls return DOCA_ERROR_INVALID_VALUE if an argument is
/// NULL. One thread.
#ifndef DOCA_PE_H_
#define DOCA_PE_H_

#include <stddef.h>
#include <stdint.h>

#include "doca_ctx.h"
#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_pe;
struct doca_task;

/// Flags of doca_task_submit_ex().
enum doca_task_submit_flag {
  DOCA_TASK_SUBMIT_FLAG_NONE = 0,
  /// Starts the task, and those that wait. Without it a task may wait for doca_ctx_flush_tasks().
  DOCA_TASK_SUBMIT_FLAG_FLUSH = 1 << 0,
  DOCA_TASK_SUBMIT_FLAG_OPTIMIZE_REPORTS = 1 << 1  ///< accepted; changes nothing
};

doca_error_t doca_pe_create(struct doca_pe **pe);
/// DOCA_ERROR_IN_USE while a context is connected: contexts are destroyed first.
/// DOCA_ERROR_NOT_PERMITTED in a callback of doca_pe_progress().
doca_error_t doca_pe_destroy(struct doca_pe *pe);
/// Connects an idle context, once and for its life. DOCA_ERROR_BAD_STATE if it is connected.
doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);
/// Does the work that there is, within a bound, and calls callbacks. Returns 1 if there was work,
/// else 0; also 0 for NULL and in a callback.
uint8_t doca_pe_progress(struct doca_pe *pe);
/// The number of tasks in flight of all its contexts.
doca_error_t doca_pe_get_num_inflight_tasks(const struct doca_pe *pe, size_t *num_inflight_tasks);

/// The descriptor to wait on, with poll or epoll; it stays the engine's.
doca_error_t doca_pe_get_notification_handle(const struct doca_pe *pe, doca_event_handle_t *handle);
/// Makes the descriptor readable when there is work. Wait only after a doca_pe_progress() that
/// returned 0. Where work can only be found by polling, the descriptor is readable at once.
doca_error_t doca_pe_request_notification(struct doca_pe *pe);
/// Ends the request, after the wait. `handle` is not used.
doca_error_t doca_pe_clear_notification(struct doca_pe *pe, doca_event_handle_t handle);

/// Submits a task, which the library owns until its callback. An error means that it was not
/// submitted: DOCA_ERROR_BAD_STATE if its context is not running or it is in flight,
/// DOCA_ERROR_INVALID_VALUE, DOCA_ERROR_NOT_PERMITTED or DOCA_ERROR_NOT_SUPPORTED for invalid
/// arguments of the task.
doca_error_t doca_task_submit(struct doca_task *task);
/// `flags`: of doca_task_submit_flag. DOCA_ERROR_INVALID_VALUE for others.
doca_error_t doca_task_submit_ex(struct doca_task *task, uint32_t flags);
/// Does the same as doca_task_submit(), which checks all arguments too.
doca_error_t doca_task_try_submit(struct doca_task *task);
/// Returns the task to its context. Logs an error, and does nothing else, if it is in flight or
/// freed.
void doca_task_free(struct doca_task *task);
/// The result, in and after the callback; DOCA_SUCCESS before. DOCA_ERROR_INVALID_VALUE for NULL.
doca_error_t doca_task_get_status(const struct doca_task *task);
/// NULL for NULL.
struct doca_ctx *doca_task_get_ctx(const struct doca_task *task);
/// The data that callbacks of the task get. Does nothing for NULL.
void doca_task_set_user_data(struct doca_task *task, union doca_data user_data);
union doca_data doca_task_get_user_data(const struct doca_task *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
