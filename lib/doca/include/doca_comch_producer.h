/// Producers: they send messages to consumers of the peer.
///
/// A producer belongs to a connection of doca_comch.h, and may be connected to another progress
/// engine, on another thread. All calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_COMCH_PRODUCER_H_
#define DOCA_COMCH_PRODUCER_H_

#include <stdint.h>

#include "doca_buf.h"
#include "doca_comch.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_comch_producer;
/// A producer in a kernel: doca_gpunetio_dev_comch.cuh.
struct doca_comch_gpu_producer;
/// Sends a message. Its submission returns DOCA_ERROR_AGAIN if the consumer has posted no buffer or
/// another message to it is on its way, DOCA_ERROR_INVALID_VALUE if the posted buffer is too small,
/// and DOCA_ERROR_NOT_CONNECTED if there is no such consumer, or it has stopped.
struct doca_comch_producer_task_send;

typedef void (*doca_comch_producer_task_send_completion_cb_t)(
    struct doca_comch_producer_task_send *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// DOCA_SUCCESS for a host device, else DOCA_ERROR_NOT_SUPPORTED, as below.
doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo);
/// The most tasks of a producer.
doca_error_t doca_comch_producer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_num_tasks);
/// The most bytes of a message.
doca_error_t doca_comch_producer_cap_get_max_buf_size(const struct doca_devinfo *devinfo,
                                                      uint32_t *max_buf_size);
/// The most buffers of a list.
doca_error_t doca_comch_producer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
                                                          uint32_t *max_buf_list_len);

doca_error_t doca_comch_producer_create(struct doca_comch_connection *comch_connection,
                                        struct doca_comch_producer **producer);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_comch_producer_destroy(struct doca_comch_producer *producer);
/// NULL for NULL.
struct doca_ctx *doca_comch_producer_as_ctx(struct doca_comch_producer *producer);
/// The id that receivers see.
doca_error_t doca_comch_producer_get_id(const struct doca_comch_producer *producer, uint32_t *id);
/// Returns the handle for kernels, which is valid until the next start or the destruction of the
/// producer. It has at least as many entries as there are tasks. DOCA_ERROR_BAD_STATE if the data
/// path is on no GPU, or the producer was not started.
doca_error_t doca_comch_producer_get_gpu_handle(const struct doca_comch_producer *producer,
                                                 struct doca_comch_gpu_producer **gpu_producer);

/// Sets the number of tasks and their callbacks, before the start. DOCA_ERROR_IN_USE while a graph has
/// a node of the context.
doca_error_t doca_comch_producer_task_send_set_conf(
    struct doca_comch_producer *producer,
    doca_comch_producer_task_send_completion_cb_t task_completion_cb,
    doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);
/// Takes a task. `buf`: what is sent, with the list behind it; NULL: immediate bytes only.
/// `imm_data`: these, which must not change until the task's callback. DOCA_ERROR_BAD_STATE if the
/// producer is not running, DOCA_ERROR_NO_MEMORY if all tasks are allocated,
/// DOCA_ERROR_INVALID_VALUE for too many immediate bytes, or neither them nor a buffer.
doca_error_t doca_comch_producer_task_send_alloc_init(struct doca_comch_producer *producer,
                                                      const struct doca_buf *buf,
                                                      uint8_t *imm_data, uint32_t imm_data_len,
                                                      uint32_t consumer_id,
                                                      struct doca_comch_producer_task_send **task);
/// NULL for NULL.
struct doca_task *doca_comch_producer_task_send_as_task(struct doca_comch_producer_task_send *task);
/// These must not be called while the task is in flight: they log an error and do nothing else.
void doca_comch_producer_task_send_set_buf(struct doca_comch_producer_task_send *task,
                                           const struct doca_buf *buf);
void doca_comch_producer_task_send_set_consumer_id(struct doca_comch_producer_task_send *task,
                                                   uint32_t consumer_id);
const struct doca_buf *doca_comch_producer_task_send_get_buf(
    const struct doca_comch_producer_task_send *task);
uint32_t doca_comch_producer_task_send_get_consumer_id(
    const struct doca_comch_producer_task_send *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
