/// Tasks that receive an Ethernet frame each: of a queue of the type DOCA_ETH_RXQ_TYPE_REGULAR.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL. One thread: that of the
/// context's progress engine.
#ifndef DOCA_ETH_RXQ_CPU_DATA_PATH_H_
#define DOCA_ETH_RXQ_CPU_DATA_PATH_H_

#include <stdint.h>

#include "doca_buf.h"
#include "doca_error.h"
#include "doca_eth_rxq.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Receives a frame behind the data of its buffer, which grows. The frame is as on the wire, from
/// the destination address on, without the checksum at its end.
struct doca_eth_rxq_task_recv;

typedef void (*doca_eth_rxq_task_recv_completion_cb_t)(struct doca_eth_rxq_task_recv *task_recv,
                                                       union doca_data task_user_data,
                                                       union doca_data ctx_user_data);

/// Sets the number of tasks and their callbacks, before the start. Tasks get frames in the order of
/// their submission. A frame that is longer than the room of its buffer fails the task with
/// DOCA_ERROR_IO_FAILED, and an interface that is gone with DOCA_ERROR_NOT_CONNECTED; both stop the
/// context. DOCA_ERROR_BAD_STATE if the context is not idle, DOCA_ERROR_IN_USE while a graph has a
/// node of it, DOCA_ERROR_INVALID_VALUE for no tasks or more than 65536.
doca_error_t doca_eth_rxq_task_recv_set_conf(
    struct doca_eth_rxq *eth_rxq, doca_eth_rxq_task_recv_completion_cb_t task_completion_cb,
    doca_eth_rxq_task_recv_completion_cb_t task_error_cb, uint32_t task_recv_num);
/// Takes a task. DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_NO_MEMORY if all
/// tasks are allocated. Its submission returns DOCA_ERROR_NOT_SUPPORTED for a list of buffers and
/// for memory of a GPU or of another process, DOCA_ERROR_NOT_PERMITTED for a read-only mmap.
doca_error_t doca_eth_rxq_task_recv_allocate_init(struct doca_eth_rxq *eth_rxq,
                                                  struct doca_buf *pkt, union doca_data user_data,
                                                  struct doca_eth_rxq_task_recv **task_recv);
/// NULL for NULL.
struct doca_task *doca_eth_rxq_task_recv_as_doca_task(struct doca_eth_rxq_task_recv *task_recv);
/// Must not be called while the task is in flight: it logs an error and does nothing else.
void doca_eth_rxq_task_recv_set_pkt(struct doca_eth_rxq_task_recv *task_recv, struct doca_buf *pkt);
doca_error_t doca_eth_rxq_task_recv_get_pkt(const struct doca_eth_rxq_task_recv *task_recv,
                                            struct doca_buf **pkt);

// These describe the frame of a task that has ended. DOCA_ERROR_BAD_STATE if the queue is not
// configured for it.

/// The numbers of metadata, each 0, valid for ever.
doca_error_t doca_eth_rxq_task_recv_get_metadata_array(
    const struct doca_eth_rxq_task_recv *task_recv, const uint32_t **metadata_array);
/// 0 for a frame without IP.
doca_error_t doca_eth_rxq_task_recv_get_rx_hash(const struct doca_eth_rxq_task_recv *task_recv,
                                                uint32_t *rx_hash);
/// Nanoseconds.
doca_error_t doca_eth_rxq_task_recv_get_timestamp(const struct doca_eth_rxq_task_recv *task_recv,
                                                  uint64_t *timestamp);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
