/// Send queues of Ethernet frames in kernels. Without the CUDA compiler the functions are for
/// threads, which stand in for the kernels of a host GPU.
///
/// doca_gpu_dev_eth_txq_send() is for any number of threads at once. The functions for entries are
/// for a program that shares out the entries of a queue by itself, and then uses no other function
/// to send on it. Keys are in network order (htobe32). The library's thread copies the frames: one
/// must not change until its end.
#ifndef DOCA_GPUNETIO_DEV_ETH_TXQ_CUH_
#define DOCA_GPUNETIO_DEV_ETH_TXQ_CUH_

#include "doca_eth_txq_gpu_data_path.h"
#include "doca_gpunetio_dev_eth_common.cuh"

/// An entry of a send queue. Its members are the library's own, as those of the queue.
struct doca_gpu_dev_eth_txq_wqe {
  uint64_t address;
  uint32_t mkey;
  uint32_t bytes;
  uint32_t flags;
  uint32_t reserved;
  uint64_t time;  ///< nanoseconds of CLOCK_REALTIME; 0: at once
};
struct doca_gpu_eth_txq {
  struct offload_gpu_eth_words* words;
  struct doca_gpu_dev_eth_txq_wqe* entries;
  uint32_t mask;       ///< entries less 1
  uint32_t may_wait;   ///< frames may have a time
  uint64_t reserved;   ///< entries that threads have reserved
  uint64_t submitted;  ///< entries that the library was given by doca_gpu_dev_eth_txq_send()
  uint64_t polled;     ///< ends that polls have taken, or wait for
};

/// Returns an entry by its number, which goes on from 0. It is free again once its frame, or a
/// later one, has ended.
DOCA_GPU_DEVICE struct doca_gpu_dev_eth_txq_wqe* doca_gpu_dev_eth_txq_get_wqe_ptr(
    struct doca_gpu_eth_txq* txq, uint64_t wqe_idx) {
  return &txq->entries[wqe_idx & txq->mask];
}

/// Writes an entry that sends `size` bytes, one frame, from `addr` on. `flags`: of
/// doca_gpu_eth_send_flags.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send(
    struct doca_gpu_eth_txq* txq, struct doca_gpu_dev_eth_txq_wqe* wqe_ptr, uint64_t wqe_idx,
    uint64_t addr, uint32_t mkey, size_t size, enum doca_gpu_eth_send_flags flags) {
  (void)txq;
  (void)wqe_idx;
  wqe_ptr->address = addr;
  wqe_ptr->mkey = mkey;
  // The library refuses what is too long for a frame.
  wqe_ptr->bytes = size < UINT32_MAX ? static_cast<uint32_t>(size) : UINT32_MAX;
  wqe_ptr->flags = flags;
  wqe_ptr->time = 0;
  return DOCA_SUCCESS;
}

/// Gives the library the entries below `prod_index`, by one thread. Entries that other threads have
/// written must be visible to it, as after __syncthreads().
template <enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
          enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO>
DOCA_GPU_DEVICE void doca_gpu_dev_eth_txq_submit(struct doca_gpu_eth_txq* txq,
                                                 uint64_t prod_index) {
  offload_gpu_comch_store(&txq->words->kernel, prod_index);
}

/// Returns the error of a queue that has none of the library's any more; DOCA_SUCCESS else.
/// `ended`: set to the number of ended frames, modulo 2^32.
DOCA_GPU_DEVICE doca_error_t offload_gpu_eth_state(const struct doca_gpu_eth_txq* txq,
                                                   uint32_t* ended) {
  const uint64_t word = offload_gpu_comch_load(&txq->words->library);
  *ended = static_cast<uint32_t>(word);
  return static_cast<doca_error_t>(word >> 32);
}

/// Waits for `count` free entries from `first` on.
DOCA_GPU_DEVICE doca_error_t offload_gpu_eth_wait_for_room(const struct doca_gpu_eth_txq* txq,
                                                           uint64_t first, uint32_t count) {
  for (;;) {
    uint32_t ended = 0;
    const doca_error_t state = offload_gpu_eth_state(txq, &ended);
    if (state != DOCA_SUCCESS) return state;
    if (static_cast<uint32_t>(first) + count - ended <= txq->mask + 1) return DOCA_SUCCESS;
    offload_gpu_eth_pause();
  }
}

/// Gives the library `count` entries from `first` on, behind those that were reserved before.
DOCA_GPU_DEVICE doca_error_t offload_gpu_eth_submit_in_order(struct doca_gpu_eth_txq* txq,
                                                             uint64_t first, uint32_t count) {
  // Acquire, and the releases below: the library sees the entries of the threads before, too.
  while (offload_gpu_comch_load(&txq->submitted) != first) {
    uint32_t ended = 0;
    const doca_error_t state = offload_gpu_eth_state(txq, &ended);
    if (state != DOCA_SUCCESS) return state;
    offload_gpu_eth_pause();
  }
  offload_gpu_comch_store(&txq->words->kernel, first + count);
  offload_gpu_comch_store(&txq->submitted, first + count);
  return DOCA_SUCCESS;
}

/// Sends a frame of each thread of the scope at `ts`, nanoseconds of CLOCK_REALTIME as
/// doca_eth_txq_calculate_timestamp() returns them; 0: at once. Frames behind it wait too.
/// DOCA_ERROR_NOT_SUPPORTED without doca_eth_txq_set_wait_on_time_offload(). Else as
/// doca_gpu_dev_eth_txq_send()
template <enum doca_gpu_dev_eth_resource_sharing_mode sharing_mode =
              DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
          enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_txq_wait_send(struct doca_gpu_eth_txq* txq,
                                                            uint64_t ts, uint64_t addr,
                                                            uint32_t mkey, size_t size,
                                                            enum doca_gpu_eth_send_flags flags,
                                                            doca_gpu_dev_eth_ticket_t* out_ticket) {
  if (ts != 0 && txq->may_wait == 0) return DOCA_ERROR_NOT_SUPPORTED;
  const uint32_t rank = offload_gpu_eth_rank<exec_scope>();
  const uint32_t count = offload_gpu_eth_size<exec_scope>();
  if (count > txq->mask + 1) return DOCA_ERROR_INVALID_VALUE;
  uint64_t first = 0;
  uint64_t result = 0;
  if (rank == 0) {
    first = offload_gpu_eth_add(&txq->reserved, count);
    result = offload_gpu_eth_wait_for_room(txq, first, count);
  }
  first = offload_gpu_eth_from_first<exec_scope>(first);
  result = offload_gpu_eth_from_first<exec_scope>(result);
  if (result != 0) return static_cast<doca_error_t>(result);
  struct doca_gpu_dev_eth_txq_wqe* entry = doca_gpu_dev_eth_txq_get_wqe_ptr(txq, first + rank);
  doca_gpu_dev_eth_txq_wqe_prepare_send(txq, entry, first + rank, addr, mkey, size, flags);
  entry->time = ts;
  if (out_ticket != 0) *out_ticket = first + rank;
  offload_gpu_eth_sync<exec_scope>();
  if (rank == 0) result = offload_gpu_eth_submit_in_order(txq, first, count);
  return static_cast<doca_error_t>(offload_gpu_eth_from_first<exec_scope>(result));
}

/// Sends a frame of each thread of the scope, in their order and behind earlier ones; every thread
/// of it calls it. Waits while the queue is full. `out_ticket`: set to the position; NULL: not.
/// DOCA_ERROR_INVALID_VALUE for a scope of more threads than entries, DOCA_ERROR_BAD_STATE once the
/// context has stopped, DOCA_ERROR_IO_FAILED if it has failed.
template <enum doca_gpu_dev_eth_resource_sharing_mode sharing_mode =
              DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
          enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_txq_send(struct doca_gpu_eth_txq* txq, uint64_t addr,
                                                       uint32_t mkey, size_t size,
                                                       enum doca_gpu_eth_send_flags flags,
                                                       doca_gpu_dev_eth_ticket_t* out_ticket) {
  return doca_gpu_dev_eth_txq_wait_send<sharing_mode, sync_scope, nic_handler, exec_scope>(
      txq, 0, addr, mkey, size, flags, out_ticket);
}

/// Waits until the end of a frame with DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY: of number `cqe_idx`
/// among them, from 0. DOCA_ERROR_AGAIN with DOCA_GPUNETIO_ETH_WAIT_FLAG_NB: it has not ended. A
/// frame has ended when the interface has taken it off its queue. Errors: those of a send.
template <enum doca_gpu_dev_eth_resource_sharing_mode sharing_mode =
              DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_txq_poll_completion_at(
    struct doca_gpu_eth_txq* txq, uint64_t cqe_idx, enum doca_gpu_dev_eth_wait_flags wait_flag) {
  do {
    uint32_t ended = 0;
    // First, so that an end before the error is seen.
    const doca_error_t state = offload_gpu_eth_state(txq, &ended);
    if (offload_gpu_comch_load(&txq->words->notified) > cqe_idx) return DOCA_SUCCESS;
    if (state != DOCA_SUCCESS) return state;
    offload_gpu_eth_pause();
  } while (wait_flag == DOCA_GPUNETIO_ETH_WAIT_FLAG_B);
  return DOCA_ERROR_AGAIN;
}

/// Takes the ends of the next `max_completions` frames with DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, of
/// the next one only with DOCA_GPUNETIO_ETH_CQ_POLL_ONE: waits for them, or takes none if they have
/// not ended. `num_completed`: set to how many were taken. Each end is taken by one thread. Errors
/// as those of a send.
template <enum doca_gpu_dev_eth_cq_poll poll = DOCA_GPUNETIO_ETH_CQ_POLL_LAST,
          enum doca_gpu_dev_eth_resource_sharing_mode sharing_mode =
              DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_txq_poll_completion(
    struct doca_gpu_eth_txq* txq, uint32_t max_completions,
    enum doca_gpu_dev_eth_wait_flags wait_flag, uint32_t* num_completed) {
  const uint32_t count =
      poll == DOCA_GPUNETIO_ETH_CQ_POLL_ONE && max_completions != 0 ? 1 : max_completions;
  *num_completed = 0;
  if (count == 0) return DOCA_SUCCESS;
  const uint64_t first = offload_gpu_eth_add(&txq->polled, count);
  const doca_error_t result =
      doca_gpu_dev_eth_txq_poll_completion_at(txq, first + count - 1, wait_flag);
  if (result == DOCA_SUCCESS) {
    *num_completed = count;
  } else {
    offload_gpu_eth_add(&txq->polled, 0ULL - count);
  }
  return result == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : result;
}

#endif
