/// Send queues for kernels, with doca_ctx_set_datapath_on_gpu(). The functions for kernels are in
/// doca_gpunetio_dev_eth_txq.cuh.
///
/// The thread of the GPU sends the frames, and needs no turns of a progress engine; a context that
/// is connected to none can be started. All calls return DOCA_ERROR_INVALID_VALUE if a pointer is
/// NULL. One thread: that of the context.
#ifndef DOCA_ETH_TXQ_GPU_DATA_PATH_H_
#define DOCA_ETH_TXQ_GPU_DATA_PATH_H_

#include <stdint.h>

#include "doca_error.h"
#include "doca_eth_txq.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct doca_gpu_eth_txq;

/// Returns the queue for kernels, which is valid until the next start or the destruction of the
/// context. DOCA_ERROR_BAD_STATE if the data path is on no GPU, or the context was not started.
doca_error_t doca_eth_txq_get_gpu_handle(const struct doca_eth_txq *eth_txq,
                                         struct doca_gpu_eth_txq **eth_txq_gpu);

// These return DOCA_ERROR_BAD_STATE if the context is not idle, and else do nothing.

/// Kernels poll for the ends of frames: they always do.
doca_error_t doca_eth_txq_gpu_set_completion_on_gpu(struct doca_eth_txq *eth_txq);
/// A thread of the program rings the doorbell of the card: there is none.
doca_error_t doca_eth_txq_gpu_set_uar_on_cpu(struct doca_eth_txq *eth_txq);

/// Does nothing: the library's thread looks for frames. Any thread. DOCA_ERROR_BAD_STATE without
/// doca_eth_txq_gpu_set_uar_on_cpu().
doca_error_t doca_eth_txq_gpu_cpu_proxy_progress(struct doca_eth_txq *eth_txq);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
