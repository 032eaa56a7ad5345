/// Consumers: they receive the messages that producers of the peer send, into posted buffers.
///
/// A consumer belongs to a connection of doca_comch.h, and may be connected to another progress
/// engine, on another thread. All calls return DOCA_ERROR_INVALID_VALUE if an argument is NULL.
#ifndef DOCA_COMCH_CONSUMER_H_
#define DOCA_COMCH_CONSUMER_H_

#include <stdint.h>

#include "doca_buf.h"
#include "doca_comch.h"
#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_error.h"
#include "doca_mmap.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_comch_consumer;
/// A consumer in a kernel: doca_gpunetio_dev_comch.cuh.
struct doca_comch_gpu_consumer;
/// Posts a buffer: a message is written behind its data. Messages fill posted buffers in order.
struct doca_comch_consumer_task_post_recv;

typedef void (*doca_comch_consumer_task_post_recv_completion_cb_t)(
    struct doca_comch_consumer_task_post_recv *task, union doca_data task_user_data,
    union doca_data ctx_user_data);

/// DOCA_SUCCESS for a host device, else DOCA_ERROR_NOT_SUPPORTED, as below.
doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo);
/// The most tasks of a consumer.
doca_error_t doca_comch_consumer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_num_tasks);
/// The most bytes of a message.
doca_error_t doca_comch_consumer_cap_get_max_buf_size(const struct doca_devinfo *devinfo,
                                                      uint32_t *max_buf_size);
/// The most immediate bytes of a message.
doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(const struct doca_devinfo *devinfo,
                                                          uint32_t *imm_data_len);

/// `buf_mmap`: started, of which the posted buffers are. DOCA_ERROR_NOT_PERMITTED if it is not
/// started or lacks DOCA_ACCESS_FLAG_PCI_READ_WRITE.
///
/// The start returns DOCA_ERROR_IN_PROGRESS: the consumer is starting until the peer knows it, for
/// which both sides give the contexts of the connection their turns. The peer then has an event.
doca_error_t doca_comch_consumer_create(struct doca_comch_connection *comch_connection,
                                        struct doca_mmap *buf_mmap,
                                        struct doca_comch_consumer **consumer);
/// DOCA_ERROR_BAD_STATE if it is not idle, DOCA_ERROR_IN_USE while a graph has a node of it.
doca_error_t doca_comch_consumer_destroy(struct doca_comch_consumer *consumer);
/// NULL for NULL.
struct doca_ctx *doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer);
/// The id that the peer's event has. DOCA_ERROR_BAD_STATE before the first start.
doca_error_t doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer, uint32_t *id);
/// Returns the handle for kernels, which is valid until the next start or the destruction of the
/// consumer. It has at least as many entries as there are tasks. DOCA_ERROR_BAD_STATE if the data
/// path is on no GPU, or the consumer was not started.
doca_error_t doca_comch_consumer_get_gpu_handle(const struct doca_comch_consumer *consumer,
                                                 struct doca_comch_gpu_consumer **gpu_consumer);
/// The most immediate bytes that the program expects. DOCA_ERROR_INVALID_VALUE for more than the
/// most, DOCA_ERROR_BAD_STATE if the consumer is not idle.
doca_error_t doca_comch_consumer_set_imm_data_len(struct doca_comch_consumer *consumer,
                                                  uint32_t imm_data_len);
doca_error_t doca_comch_consumer_get_imm_data_len(const struct doca_comch_consumer *consumer,
                                                  uint32_t *imm_data_len);

/// Sets the number of tasks and their callbacks, before the start. DOCA_ERROR_IN_USE while a graph has
/// a node of the context.
doca_error_t doca_comch_consumer_task_post_recv_set_conf(
    struct doca_comch_consumer *consumer,
    doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
    doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb, uint32_t num_post_recv_tasks);
/// Takes a task. `buf`: NULL for messages of immediate bytes only. DOCA_ERROR_BAD_STATE if the
/// consumer is not running, DOCA_ERROR_NO_MEMORY if all tasks are allocated. A buffer of another
/// mmap is refused when the task is submitted: DOCA_ERROR_INVALID_VALUE.
doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
    struct doca_comch_consumer *consumer, struct doca_buf *buf,
    struct doca_comch_consumer_task_post_recv **task);
/// NULL for NULL.
struct doca_task *doca_comch_consumer_task_post_recv_as_task(
    struct doca_comch_consumer_task_post_recv *task);
/// Must not be called while the task is in flight: it logs an error and does nothing else.
void doca_comch_consumer_task_post_recv_set_buf(struct doca_comch_consumer_task_post_recv *task,
                                                struct doca_buf *buf);
struct doca_buf *doca_comch_consumer_task_post_recv_get_buf(
    const struct doca_comch_consumer_task_post_recv *task);
/// The immediate bytes of the message, valid until the task is submitted or freed; NULL for NULL.
const uint8_t *doca_comch_consumer_task_post_recv_get_imm_data(
    const struct doca_comch_consumer_task_post_recv *task);
uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
    const struct doca_comch_consumer_task_post_recv *task);
/// The id of the producer that sent the message.
uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
    const struct doca_comch_consumer_task_post_recv *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
