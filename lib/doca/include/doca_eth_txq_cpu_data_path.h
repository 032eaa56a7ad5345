/// Tasks that send an Ethernet frame each.
///
/// All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL. One thread: that of the
/// context's progress engine.
#ifndef DOCA_ETH_TXQ_CPU_DATA_PATH_H_
#define DOCA_ETH_TXQ_CPU_DATA_PATH_H_

#include <stdint.h>

#include "doca_buf.h"
#include "doca_error.h"
#include "doca_eth_txq.h"
#include "doca_pe.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Sends the data of a buffer, or of a list of at most 32, as one frame: from the destination
/// address on, without the checksum at its end.
struct doca_eth_txq_task_send;

typedef void (*doca_eth_txq_task_send_completion_cb_t)(struct doca_eth_txq_task_send *task_send,
                                                       union doca_data task_user_data,
                                                       union doca_data ctx_user_data);

/// Sets the number of tasks and their callbacks, before the start. A task ends when the interface
/// has taken its frame; while the interface is down tasks wait. The stop fails tasks whose frames
/// may still be sent. An interface that is gone fails them with DOCA_ERROR_NOT_CONNECTED and stops
/// the context. DOCA_ERROR_BAD_STATE if the context is not idle, DOCA_ERROR_IN_USE while a graph
/// has a node of it, DOCA_ERROR_INVALID_VALUE for no tasks or more than 65536.
doca_error_t doca_eth_txq_task_send_set_conf(
    struct doca_eth_txq *eth_txq, doca_eth_txq_task_send_completion_cb_t task_completion_cb,
    doca_eth_txq_task_send_completion_cb_t task_error_cb, uint32_t task_send_num);
/// Takes a task. DOCA_ERROR_BAD_STATE if the context is not running, DOCA_ERROR_NO_MEMORY if all
/// tasks are allocated. Its submission returns DOCA_ERROR_INVALID_VALUE for a frame of less than 14
/// bytes or more than doca_eth_rxq_cap_get_max_packet_size() says, DOCA_ERROR_NOT_SUPPORTED for too
/// many buffers and for memory of a GPU or of another process.
doca_error_t doca_eth_txq_task_send_allocate_init(struct doca_eth_txq *eth_txq,
                                                  struct doca_buf *pkt, union doca_data user_data,
                                                  struct doca_eth_txq_task_send **task_send);
/// NULL for NULL.
struct doca_task *doca_eth_txq_task_send_as_doca_task(struct doca_eth_txq_task_send *task_send);
/// Must not be called while the task is in flight: it logs an error and does nothing else.
void doca_eth_txq_task_send_set_pkt(struct doca_eth_txq_task_send *task_send, struct doca_buf *pkt);
doca_error_t doca_eth_txq_task_send_get_pkt(const struct doca_eth_txq_task_send *task_send,
                                            struct doca_buf **pkt);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
