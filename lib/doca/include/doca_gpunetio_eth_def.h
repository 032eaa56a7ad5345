/// Types of Ethernet queues that a program and its kernels share.
#ifndef DOCA_GPUNETIO_ETH_DEF_H_
#define DOCA_GPUNETIO_ETH_DEF_H_

#include <stdint.h>

/// Reads or writes a word that another processor changes.
#ifndef DOCA_GPUNETIO_VOLATILE
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile __typeof__(x)*)&(x))
#endif

#define DOCA_GPUNETIO_ETH_WARP_SIZE 32

/// The threads that call a function together, each of them. Threads that stand in for a kernel
/// always call it by themselves.
enum doca_gpu_dev_eth_exec_scope {
  DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD = 0,
  DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP = 1,
  DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK = 2
};

/// The processor that tells the card of new entries. Here the library's thread looks for them: no
/// effect.
enum doca_gpu_dev_eth_nic_handler {
  DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO = 0,
  DOCA_GPUNETIO_ETH_NIC_HANDLER_CPU_PROXY = 1,
  DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB = 2
};

/// How a GPU before Hopper waits for a frame's bytes. Here they are in its memory before the kernel
/// is told of them: no effect.
enum doca_gpu_dev_eth_mcst {
  DOCA_GPUNETIO_ETH_MCST_AUTO = 0,
  DOCA_GPUNETIO_ETH_MCST_DISABLED = 1,
  DOCA_GPUNETIO_ETH_MCST_ENABLED = 2
};

/// The values of a frame that a receive writes.
enum doca_gpu_dev_eth_rx_attr {
  DOCA_GPUNETIO_ETH_RX_ATTR_NONE = 0,
  DOCA_GPUNETIO_ETH_RX_ATTR_BYTES = 1 << 0,
  DOCA_GPUNETIO_ETH_RX_ATTR_TIMESTAMP = 1 << 1,
  DOCA_GPUNETIO_ETH_RX_ATTR_ALL = (1 << 2) - 1
};

/// The threads that share a queue, and those that see each other's accesses to it. Here every queue
/// can be shared by all threads of the GPU: no effect.
enum doca_gpu_dev_eth_resource_sharing_mode {
  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE = 0,
  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA = 1,
  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU = 2
};
enum doca_gpu_dev_eth_sync_scope {
  DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU = 0,
  DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA = 1,
  DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS = 2
};

enum doca_gpu_eth_send_flags {
  DOCA_GPUNETIO_ETH_SEND_FLAG_NONE = 0,
  DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY = 1 << 0  ///< its end is counted for polls
};

enum doca_gpu_dev_eth_wait_flags {
  DOCA_GPUNETIO_ETH_WAIT_FLAG_NB = 0,  ///< look once
  DOCA_GPUNETIO_ETH_WAIT_FLAG_B = 1    ///< wait
};

/// The ends that a poll waits for.
enum doca_gpu_dev_eth_cq_poll {
  DOCA_GPUNETIO_ETH_CQ_POLL_ONE = 0,  ///< the next one
  DOCA_GPUNETIO_ETH_CQ_POLL_LAST = 1  ///< all that the caller asks for
};

/// The position of a frame in its send queue.
typedef uint64_t doca_gpu_dev_eth_ticket_t;

/// A received frame.
struct doca_gpu_dev_eth_rxq_attr {
  uint32_t bytes;
  uint64_t timestamp_ns;  ///< of CLOCK_REALTIME, when the library has taken it
};

#endif
