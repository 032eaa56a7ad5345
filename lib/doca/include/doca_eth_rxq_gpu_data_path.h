/// Receive queues for kernels: of the type DOCA_ETH_RXQ_TYPE_CYCLIC, with
/// doca_ctx_set_datapath_on_gpu(). The functions for kernels are in doca_gpunetio_dev_eth_rxq.cuh.
///
/// The thread of the GPU copies frames to the buffer of doca_eth_rxq_set_pkt_buf() as soon as it
/// has a free place, and needs no turns of a progress engine; a context that is connected to none
/// can be started. All calls return DOCA_ERROR_INVALID_VALUE if a pointer is NULL. One thread: that
/// of the context.
#ifndef DOCA_ETH_RXQ_GPU_DATA_PATH_H_
#define DOCA_ETH_RXQ_GPU_DATA_PATH_H_

#include <stdint.h>

#include "doca_error.h"
#include "doca_eth_rxq.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_gpu_eth_rxq;

/// Returns the queue for kernels, which is valid until the next start or the destruction of the
/// context. DOCA_ERROR_BAD_STATE if the data path is on no GPU, or the context was not started.
doca_error_t doca_eth_rxq_get_gpu_handle(const struct doca_eth_rxq *eth_rxq,
                                         struct doca_gpu_eth_rxq **eth_rxq_gpu);
/// Does nothing: frames are in the GPU's memory before a kernel is told of them.
/// DOCA_ERROR_BAD_STATE if the context is not idle.
doca_error_t doca_eth_rxq_gpu_enable_mcst_qp(struct doca_eth_rxq *eth_rxq);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
