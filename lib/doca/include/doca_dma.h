/// A context that copies memory. Here the processor copies it, on the thread of the progress engine;
/// what only an open GPU accesses is copied by that GPU, and the thread waits for it. Kernels that
/// use the context (doca_ctx_set_datapath_on_gpu()) are served by a thread of the GPU.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_DMA_H_
#define DOCA_DMA_H_

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

struct doca_dma;
/// The context for kernels: doca_gpunetio_dev_dma.cuh.
struct doca_gpu_dma;
/// Copies the data of its source behind the data of its destination.
struct doca_dma_task_memcpy;

typedef void (*doca_dma_task_memcpy_completion_cb_t)(struct doca_dma_task_memcpy *task,
                                                     union doca_data task_user_data,
                                                     union doca_data ctx_user_data);

/// DOCA_SUCCESS if the device copies, else DOCA_ERROR_NOT_SUPPORTED.
doca_error_t doca_dma_cap_task_memcpy_is_supported(const struct doca_devinfo *devinfo);
/// The longest copy, bytes. DOCA_ERROR_NOT_SUPPORTED if the device does not copy; so below.
doca_error_t doca_dma_cap_task_memcpy_get_max_buf_size(const struct doca_devinfo *devinfo,
                                                       uint64_t *buf_size);
/// The most buffers of a list.
doca_error_t doca_dma_cap_task_memcpy_get_max_buf_list_len(const struct doca_devinfo *devinfo,
                                                           uint32_t *max_buf_list_len);
/// The most tasks of a context.
doca_error_t doca_dma_cap_get_max_num_tasks(struct doca_dma *dma, uint32_t *max_num_tasks);

/// DOCA_ERROR_NOT_SUPPORTED if the device does not copy.
doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_dma_destroy(struct doca_dma *dma);
/// NULL for NULL.
struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma);

/// Sets the number of tasks and their callbacks, before the start. A task that fails, other than by
/// a stop, stops its context. DOCA_ERROR_BAD_STATE if the context is not idle,
/// DOCA_ERROR_IN_USE while a graph has a node of it, DOCA_ERROR_INVALID_VALUE for no tasks or more
/// than the most.
doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma,
                                           doca_dma_task_memcpy_completion_cb_t completed,
                                           doca_dma_task_memcpy_completion_cb_t failed,
                                           uint32_t num_memcpy_tasks);
/// Sets the handle for kernels, which is valid until the next start or the context's end.
/// DOCA_ERROR_BAD_STATE if the context was not started with a data path on a GPU.
doca_error_t doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **gpu_dma);
/// Takes a task. DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_NO_MEMORY if all
/// tasks are allocated, DOCA_ERROR_NOT_SUPPORTED if kernels use the context.
doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src,
                                             struct doca_buf *dst, union doca_data user_data,
                                             struct doca_dma_task_memcpy **task);
/// NULL for NULL.
struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task);
/// These must not be called while the task is in flight: they log an error and do nothing else.
void doca_dma_task_memcpy_set_src(struct doca_dma_task_memcpy *task, const struct doca_buf *src);
void doca_dma_task_memcpy_set_dst(struct doca_dma_task_memcpy *task, struct doca_buf *dst);
const struct doca_buf *doca_dma_task_memcpy_get_src(const struct doca_dma_task_memcpy *task);
struct doca_buf *doca_dma_task_memcpy_get_dst(const struct doca_dma_task_memcpy *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
