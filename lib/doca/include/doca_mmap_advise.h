/// A context whose tasks tell a device's caches about the memory of buffers. Here the caches of
/// processors and devices are coherent, and no call takes a line out of them: a task is a fence.
///
/// Calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_MMAP_ADVISE_H_
#define DOCA_MMAP_ADVISE_H_

#include <stdint.h>

#include "doca_buf.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_mmap_advise;
struct doca_mmap_advise_task_invalidate_cache;

/// Called when a task has ended, with its user data and that of its context.
typedef void (*doca_mmap_advise_task_invalidate_cache_completion_cb_t)(
    struct doca_mmap_advise_task_invalidate_cache *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// DOCA_ERROR_NOT_SUPPORTED unless it is a host device.
doca_error_t doca_mmap_advise_cap_task_cache_invalidate_is_supported(
    const struct doca_devinfo *devinfo);
/// The most bytes of a buffer; DOCA_ERROR_NOT_SUPPORTED unless it is a host device.
doca_error_t doca_mmap_advise_task_cache_invalidate_get_max_buf_size(
    const struct doca_devinfo *devinfo, uint64_t *buf_size);

/// DOCA_ERROR_NOT_SUPPORTED unless it is a host device.
doca_error_t doca_mmap_advise_create(struct doca_dev *dev, struct doca_mmap_advise **mmap_advise);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_mmap_advise_destroy(struct doca_mmap_advise *mmap_advise);
/// NULL for NULL.
struct doca_ctx *doca_mmap_advise_as_ctx(struct doca_mmap_advise *mmap_advise);

/// Sets the number of tasks and their callbacks, before the start. DOCA_ERROR_BAD_STATE if the
/// context is not idle, DOCA_ERROR_IN_USE while a graph has a node of it, DOCA_ERROR_INVALID_VALUE
/// for no tasks or more than 65536.
doca_error_t doca_mmap_advise_task_invalidate_cache_set_conf(
    struct doca_mmap_advise *mmap_advise,
    doca_mmap_advise_task_invalidate_cache_completion_cb_t completion_cb,
    doca_mmap_advise_task_invalidate_cache_completion_cb_t error_cb, uint32_t num_tasks);
/// Takes a task. After its end, writes that other processors made visible before are read from the
/// buffer. DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_NO_MEMORY if all tasks are
/// allocated.
doca_error_t doca_mmap_advise_task_invalidate_cache_alloc_init(
    struct doca_mmap_advise *mmap_advise, struct doca_buf *buf, union doca_data user_data,
    struct doca_mmap_advise_task_invalidate_cache **task);
/// NULL for NULL.
struct doca_task *doca_mmap_advise_task_invalidate_cache_as_doca_task(
    struct doca_mmap_advise_task_invalidate_cache *task);
/// Must not be called while the task is in flight: it logs an error and does nothing else.
void doca_mmap_advise_task_invalidate_cache_set_buf(
    struct doca_mmap_advise_task_invalidate_cache *task, struct doca_buf *buf);
struct doca_buf *doca_mmap_advise_task_invalidate_cache_get_buf(
    const struct doca_mmap_advise_task_invalidate_cache *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
