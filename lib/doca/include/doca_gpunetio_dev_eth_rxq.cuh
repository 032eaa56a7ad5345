/// Receive queues of Ethernet frames in kernels. Without the CUDA compiler the functions are for
/// threads, which stand in for the kernels of a host GPU.
///
/// The library's thread copies frames to the program's buffer, place after place, and tells the
/// kernel of them. The places of a receive are free again at the next receive of the queue. One
/// thread, warp or block receives from a queue at a time.
#ifndef DOCA_GPUNETIO_DEV_ETH_RXQ_CUH_
#define DOCA_GPUNETIO_DEV_ETH_RXQ_CUH_

#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_gpunetio_dev_eth_common.cuh"

/// A receive queue of a kernel, in memory of the GPU. Its members are the library's own.
struct doca_gpu_eth_rxq {
  struct offload_gpu_eth_words* words;
  const struct doca_gpu_dev_eth_rxq_attr* frames;  ///< by place
  uint64_t address;                                ///< of the first place
  uint32_t place_bytes;
  uint32_t mask;   ///< places less 1
  uint32_t mkey;   ///< of the program's buffer, in network order
  uint32_t state;  ///< as last seen
  uint64_t taken;  ///< frames that the kernel has received
};

/// Receives up to `max_rx_pkts` frames: waits until there is one, for `timeout_ns` at most. Every
/// thread of the scope calls it with the same arguments. `out_first_pkt_idx`: set to the number of
/// the first one; the others follow it. `out_pkt_num`: set to how many there are, 0 if the time is
/// over. `out_attr`: `max_rx_pkts` entries, whose first ones are set; NULL: none. All three are
/// memory that the threads of the scope share. DOCA_ERROR_BAD_STATE once the context has stopped,
/// DOCA_ERROR_IO_FAILED if it has failed.
template <enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD,
          enum doca_gpu_dev_eth_mcst mcst = DOCA_GPUNETIO_ETH_MCST_AUTO,
          enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
          enum doca_gpu_dev_eth_rx_attr rx_attr = DOCA_GPUNETIO_ETH_RX_ATTR_ALL>
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_eth_rxq_recv(struct doca_gpu_eth_rxq* rxq,
                                                       uint32_t max_rx_pkts, uint64_t timeout_ns,
                                                       uint64_t* out_first_pkt_idx,
                                                       uint32_t* out_pkt_num,
                                                       struct doca_gpu_dev_eth_rxq_attr* out_attr) {
  // All threads have read the places of the receive before.
  offload_gpu_eth_sync<exec_scope>();
  uint64_t result = 0;  // the error above the number of frames
  const uint64_t first = rxq->taken;
  if (offload_gpu_eth_rank<exec_scope>() == 0) {
    offload_gpu_comch_store(&rxq->words->kernel, first);
    uint64_t end = 0;
    for (;;) {
      const uint64_t word = offload_gpu_comch_load(&rxq->words->library);
      const uint32_t count = static_cast<uint32_t>(word) - static_cast<uint32_t>(first);
      if (count != 0 || max_rx_pkts == 0) {
        result = count < max_rx_pkts ? count : max_rx_pkts;
        break;
      }
      if ((word >> 32) != 0) {
        result = word >> 32 << 32;
        break;
      }
      if (timeout_ns == 0) break;
      const uint64_t now = offload_gpu_eth_now();
      if (end == 0) end = now + timeout_ns;
      if (now >= end) break;
      offload_gpu_eth_pause();
    }
    *out_first_pkt_idx = first;
    *out_pkt_num = static_cast<uint32_t>(result);
  }
  result = offload_gpu_eth_from_first<exec_scope>(result);
  const uint32_t count = static_cast<uint32_t>(result);
  if (out_attr != 0 && rx_attr != DOCA_GPUNETIO_ETH_RX_ATTR_NONE) {
    for (uint32_t i = offload_gpu_eth_rank<exec_scope>(); i < count;
         i += offload_gpu_eth_size<exec_scope>()) {
      out_attr[i] = rxq->frames[(first + i) & rxq->mask];
    }
  }
  // All have read the number of the first one.
  offload_gpu_eth_sync<exec_scope>();
  if (offload_gpu_eth_rank<exec_scope>() == 0) rxq->taken = first + count;
  offload_gpu_eth_sync<exec_scope>();
  return static_cast<doca_error_t>(result >> 32);
}

/// Returns the address of a received frame, by its number.
DOCA_GPU_DEVICE uint64_t doca_gpu_dev_eth_rxq_get_pkt_addr(const struct doca_gpu_eth_rxq* rxq,
                                                           uint64_t pkt_idx) {
  return rxq->address + (pkt_idx & rxq->mask) * rxq->place_bytes;
}

/// Returns the key of the memory of received frames, in network order: to send them.
DOCA_GPU_DEVICE uint32_t doca_gpu_dev_eth_rxq_get_pkt_mkey(const struct doca_gpu_eth_rxq* rxq) {
  return rxq->mkey;
}

#endif
