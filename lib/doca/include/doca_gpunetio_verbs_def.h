/// Types and constants of verbs in kernels, which the host uses too.
#ifndef DOCA_GPUNETIO_VERBS_DEF_H_
#define DOCA_GPUNETIO_VERBS_DEF_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_GPUNETIO_VERBS_WARP_SIZE 32
/// The position of the kind of a completion in the last byte of its entry.
#define DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT 4

/// A queue pair in kernels: doca_gpunetio_dev_verbs_qp.cuh.
struct doca_gpu_dev_verbs_qp;
/// One of its queues of completions.
struct doca_gpu_dev_verbs_cq;

/// The ringer of a queue's doorbell at the card.
enum doca_gpu_dev_verbs_nic_handler {
  /// The GPU if it can access the card's registers, else a thread of the library.
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO = 0,
  /// A thread of the program, by doca_gpu_verbs_cpu_proxy_progress().
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY = 1,
  /// The GPU.
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB = 2,
  /// The GPU, at a register with write combining. Entries are read from the ring all the same.
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF = 3
};

/// The threads that use a queue pair at the same time. Here any number may, in each mode.
enum doca_gpu_dev_verbs_resource_sharing_mode {
  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE = 0,
  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA = 1,
  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU = 2
};

/// The threads that call a function together.
enum doca_gpu_dev_verbs_exec_scope {
  DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD = 0,  ///< each for itself
  DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP = 1     ///< all lanes of a warp, with one doorbell
};

/// The observers of an order of memory. Here all of the system are, in each scope.
enum doca_gpu_dev_verbs_sync_scope {
  DOCA_GPUNETIO_VERBS_SYNC_SCOPE_THREAD = 0,
  DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA = 1,
  DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU = 2,
  DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS = 3
};

/// If enabled, a wait has the card read memory of the GPU that it has written, which GPUs before
/// Hopper need before a kernel reads that memory.
enum doca_gpu_dev_verbs_mcst {
  DOCA_GPUNETIO_VERBS_MCST_DISABLED = 0,
  DOCA_GPUNETIO_VERBS_MCST_ENABLED = 1
};

/// If enabled, a function waits for the end of its operation.
enum doca_gpu_dev_verbs_blocking_mode {
  DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED = 0,
  DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED = 1
};

/// The change of a signal's word.
enum doca_gpu_dev_verbs_signal_op { DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD = 0 };

/// Operations of entries: numbers of mlx5 cards.
enum {
  DOCA_GPUNETIO_MLX5_OPCODE_NOP = 0x00,
  DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE = 0x08,
  DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE_IMM = 0x09,
  DOCA_GPUNETIO_MLX5_OPCODE_SEND = 0x0a,
  DOCA_GPUNETIO_MLX5_OPCODE_SEND_IMM = 0x0b,
  DOCA_GPUNETIO_MLX5_OPCODE_RDMA_READ = 0x10
};

/// Flags of an entry: when it makes a completion.
enum doca_gpu_dev_verbs_wqe_ctrl_flags {
  DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE = 0,  ///< if it fails
  DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE = 8
};

/// The position of an entry, for a wait.
typedef uint64_t doca_gpu_dev_verbs_ticket_t;

/// An entry of a send queue.
struct doca_gpu_dev_verbs_wqe {
  uint32_t words[16];
};

/// Memory that an operation uses.
struct doca_gpu_dev_verbs_addr {
  uint64_t addr;
  uint32_t key;  ///< local or remote key of the memory, in the order of the network
};

#ifdef __cplusplus
}
#endif

#endif
