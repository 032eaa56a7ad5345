/// RDMA in kernels, by a context of doca_rdma whose data path is on the GPU. Without the CUDA
/// compiler the functions are for threads, which stand in for the kernels of a host GPU.
///
/// Each connection has a queue of operations, and all share a queue of receives: rings in pinned
/// memory of the host. A thread of the library hands committed entries to the device, and tells of
/// their ends. It checks all that a kernel writes: something invalid fails that queue. Connections
/// have indices from 0 on, in the order in which they were connected.
///
/// The functions with "strong" take the next entry of a queue; threads of a kernel may call them at
/// the same time. Those with "weak" take the entry whose position the caller says, counted from the
/// queue's first. A commit must not run beside other calls for its queue. All return
/// DOCA_ERROR_INVALID_VALUE for an index without a queue and for a length of more than 32 bits,
/// DOCA_ERROR_AGAIN if all entries are in use, DOCA_ERROR_IO_FAILED once an operation of the queue
/// has failed, and DOCA_ERROR_BAD_STATE if the context is not running.
#ifndef DOCA_GPUNETIO_DEV_RDMA_CUH_
#define DOCA_GPUNETIO_DEV_RDMA_CUH_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_comch.cuh"
#include "doca_gpunetio_dev_dma.cuh"

enum doca_gpu_dev_rdma_write_flags {
  DOCA_GPU_RDMA_WRITE_FLAG_NONE = 0,
  DOCA_GPU_RDMA_WRITE_FLAG_IMM = 1  ///< the peer gets an immediate, and a receive of it ends
};

enum doca_gpu_dev_rdma_send_flags {
  DOCA_GPU_RDMA_SEND_FLAG_NONE = 0,
  DOCA_GPU_RDMA_SEND_FLAG_IMM = 1  ///< the peer gets an immediate
};

enum doca_gpu_dev_rdma_recv_wait_flags {
  DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB = 0,  ///< look once
  DOCA_GPU_RDMA_RECV_WAIT_FLAG_B = 1    ///< wait for all receives that were committed
};

/// The most bytes that an entry has itself.
#define OFFLOAD_GPU_RDMA_INLINE 64

/// The kinds of entries.
enum offload_gpu_rdma_kind {
  OFFLOAD_GPU_RDMA_WRITE = 1,
  OFFLOAD_GPU_RDMA_SEND = 2,
  OFFLOAD_GPU_RDMA_RECEIVE = 3
};

/// An entry that a kernel writes.
struct offload_gpu_rdma_request {
  uint64_t local;
  uint64_t remote;
  uint32_t local_mkey;
  uint32_t remote_mkey;
  uint32_t length;
  uint32_t immediate;
  uint32_t kind;
  uint32_t has_immediate;
  uint32_t is_inline;  ///< its bytes follow
  uint32_t reserved;
  uint8_t bytes[OFFLOAD_GPU_RDMA_INLINE];
};

/// An entry that the library writes: the end of a receive.
struct offload_gpu_rdma_event {
  uint32_t immediate;
  uint32_t connection;
};

/// A queue, in memory of the GPU.
struct offload_gpu_rdma_queue {
  struct offload_gpu_comch_words* words;
  struct offload_gpu_rdma_request* requests;
  struct offload_gpu_rdma_event* events;  ///< of receives
  uint32_t mask;                          ///< entries of a ring less 1
  uint32_t requested;                     ///< entries that were taken
  uint32_t committed;
  uint32_t taken;  ///< ends that waits have told
};

/// The receives of a context. Its members are the library's own.
struct doca_gpu_dev_rdma_r {
  struct offload_gpu_rdma_queue queue;
};

/// A context. Its members are the library's own.
struct doca_gpu_dev_rdma {
  struct doca_gpu_dev_rdma_r receives;
  struct offload_gpu_rdma_queue* connections;
  uint64_t count;
};

/// Returns the queue of a connection; null if there is none.
DOCA_GPU_DEVICE struct offload_gpu_rdma_queue* offload_gpu_rdma_of(struct doca_gpu_dev_rdma* rdma,
                                                                   uint32_t index) {
  return index < rdma->count ? &rdma->connections[index] : 0;
}

/// Takes the next entry, or the one at `position`. Sets it to null if there is no room.
DOCA_GPU_DEVICE doca_error_t offload_gpu_rdma_take(struct offload_gpu_rdma_queue* queue,
                                                   const uint32_t* position,
                                                   struct offload_gpu_rdma_request** entry) {
  *entry = 0;
  if (queue == 0) return DOCA_ERROR_INVALID_VALUE;
  uint32_t place = position != 0 ? *position : offload_gpu_dma_exchange(&queue->requested, 0, 0);
  for (;;) {
    const uint64_t ended = offload_gpu_comch_load(&queue->words->events);
    if ((ended >> 32) != 0) return static_cast<doca_error_t>(ended >> 32);
    if (place - static_cast<uint32_t>(ended) > queue->mask) return DOCA_ERROR_AGAIN;
    if (position != 0) break;
    const uint32_t found = offload_gpu_dma_exchange(&queue->requested, place, place + 1);
    if (found == place) break;
    place = found;
  }
  *entry = &queue->requests[place & queue->mask];
  return DOCA_SUCCESS;
}

/// Hands the entries before `end` to the library.
DOCA_GPU_DEVICE doca_error_t offload_gpu_rdma_commit(struct offload_gpu_rdma_queue* queue,
                                                     uint32_t end) {
  const uint64_t ended = offload_gpu_comch_load(&queue->words->events);
  if ((ended >> 32) != 0) return static_cast<doca_error_t>(ended >> 32);
  queue->committed = end;
  offload_gpu_comch_store(&queue->words->requests, end);
  return DOCA_SUCCESS;
}

/// Waits until all committed entries have ended; sets the number of those that no wait has told.
DOCA_GPU_DEVICE doca_error_t offload_gpu_rdma_wait(struct offload_gpu_rdma_queue* queue, bool waits,
                                                   uint32_t* ended) {
  for (;;) {
    const uint64_t word = offload_gpu_comch_load(&queue->words->events);
    *ended = static_cast<uint32_t>(word) - queue->taken;
    if (static_cast<uint32_t>(word) == queue->committed) return DOCA_SUCCESS;
    if ((word >> 32) != 0) return static_cast<doca_error_t>(word >> 32);
    if (!waits) return DOCA_SUCCESS;
  }
}

/// Fills a write or a send. `data`: its bytes, or null for those of a buffer.
DOCA_GPU_DEVICE doca_error_t offload_gpu_rdma_fill(
    struct offload_gpu_rdma_queue* queue, const uint32_t* position, enum offload_gpu_rdma_kind kind,
    const struct doca_gpu_buf* remote_buf, uint64_t remote_offset,
    const struct doca_gpu_buf* local_buf, uint64_t local_offset, const uint8_t* data, size_t length,
    uint32_t immediate, bool has_immediate) {
  struct offload_gpu_rdma_request* entry;
  if (length > UINT32_MAX || (data != 0 && length > OFFLOAD_GPU_RDMA_INLINE)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  const doca_error_t status = offload_gpu_rdma_take(queue, position, &entry);
  if (status != DOCA_SUCCESS) return status;
  entry->kind = kind;
  entry->remote = remote_buf != 0 ? remote_buf->address + remote_offset : 0;
  entry->remote_mkey = remote_buf != 0 ? remote_buf->mkey : 0;
  entry->local = local_buf != 0 ? local_buf->address + local_offset : 0;
  entry->local_mkey = local_buf != 0 ? local_buf->mkey : 0;
  entry->length = static_cast<uint32_t>(length);
  entry->immediate = immediate;
  entry->has_immediate = has_immediate ? 1 : 0;
  entry->is_inline = data != 0 ? 1 : 0;
  for (size_t i = 0; data != 0 && i < length; ++i) entry->bytes[i] = data[i];
  return DOCA_SUCCESS;
}

/// Adds a write of `length` bytes of a local buffer to a remote one, from an offset in each on.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_write_strong(
    struct doca_gpu_dev_rdma* rdma, uint32_t connection_index, struct doca_gpu_buf* remote_buf,
    uint64_t remote_offset, struct doca_gpu_buf* local_buf, uint64_t local_offset, size_t length,
    uint32_t imm, enum doca_gpu_dev_rdma_write_flags flags) {
  return offload_gpu_rdma_fill(offload_gpu_rdma_of(rdma, connection_index), 0,
                               OFFLOAD_GPU_RDMA_WRITE, remote_buf, remote_offset, local_buf,
                               local_offset, 0, length, imm, flags == DOCA_GPU_RDMA_WRITE_FLAG_IMM);
}

/// Does the same with bytes that are copied now, at most 64; DOCA_ERROR_INVALID_VALUE for more.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_write_inline_strong(
    struct doca_gpu_dev_rdma* rdma, uint32_t connection_index, struct doca_gpu_buf* remote_buf,
    uint64_t remote_offset, uint8_t* local_data, size_t length, uint32_t imm,
    enum doca_gpu_dev_rdma_write_flags flags) {
  return offload_gpu_rdma_fill(offload_gpu_rdma_of(rdma, connection_index), 0,
                               OFFLOAD_GPU_RDMA_WRITE, remote_buf, remote_offset, 0, 0, local_data,
                               length, imm, flags == DOCA_GPU_RDMA_WRITE_FLAG_IMM);
}

/// The same, at a position of the connection's queue.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_write_inline_weak(
    struct doca_gpu_dev_rdma* rdma, uint32_t connection_index, struct doca_gpu_buf* remote_buf,
    uint64_t remote_offset, uint8_t* local_data, size_t length, uint32_t imm,
    enum doca_gpu_dev_rdma_write_flags flags, uint32_t position) {
  return offload_gpu_rdma_fill(offload_gpu_rdma_of(rdma, connection_index), &position,
                               OFFLOAD_GPU_RDMA_WRITE, remote_buf, remote_offset, 0, 0, local_data,
                               length, imm, flags == DOCA_GPU_RDMA_WRITE_FLAG_IMM);
}

/// Adds a send of `length` bytes of a local buffer to the peer's oldest receive.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_send_strong(
    struct doca_gpu_dev_rdma* rdma, uint32_t connection_index, struct doca_gpu_buf* local_buf,
    uint64_t local_offset, size_t length, uint32_t imm, enum doca_gpu_dev_rdma_send_flags flags) {
  return offload_gpu_rdma_fill(offload_gpu_rdma_of(rdma, connection_index), 0,
                               OFFLOAD_GPU_RDMA_SEND, 0, 0, local_buf, local_offset, 0, length, imm,
                               flags == DOCA_GPU_RDMA_SEND_FLAG_IMM);
}

/// Starts all operations that were added to a connection.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_commit_strong(struct doca_gpu_dev_rdma* rdma,
                                                             uint32_t connection_index) {
  struct offload_gpu_rdma_queue* queue = offload_gpu_rdma_of(rdma, connection_index);
  if (queue == 0) return DOCA_ERROR_INVALID_VALUE;
  return offload_gpu_rdma_commit(queue, offload_gpu_dma_exchange(&queue->requested, 0, 0));
}

/// Starts the next `num_ops` operations, which were added at their positions.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_commit_weak(struct doca_gpu_dev_rdma* rdma,
                                                           uint32_t connection_index,
                                                           uint32_t num_ops) {
  struct offload_gpu_rdma_queue* queue = offload_gpu_rdma_of(rdma, connection_index);
  if (queue == 0) return DOCA_ERROR_INVALID_VALUE;
  queue->requested += num_ops;
  return offload_gpu_rdma_commit(queue, queue->requested);
}

/// Waits until the committed operations of all connections have ended. `num_ops`: set to their
/// number since the wait before.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_wait_all(struct doca_gpu_dev_rdma* rdma,
                                                        uint32_t* num_ops) {
  *num_ops = 0;
  for (uint64_t i = 0; i < rdma->count; ++i) {
    struct offload_gpu_rdma_queue* queue = &rdma->connections[i];
    if (queue->committed == queue->taken) continue;
    uint32_t ended;
    const doca_error_t status = offload_gpu_rdma_wait(queue, true, &ended);
    if (status != DOCA_SUCCESS) return status;
    queue->taken += ended;
    *num_ops += ended;
  }
  return DOCA_SUCCESS;
}

/// Sets the receives of the context.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_get_recv(struct doca_gpu_dev_rdma* rdma,
                                                        struct doca_gpu_dev_rdma_r** rdma_r) {
  *rdma_r = &rdma->receives;
  return DOCA_SUCCESS;
}

/// Adds a receive of at most `length` bytes from an offset in a buffer on; without a buffer, for an
/// immediate alone. `flags`: 0.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_recv_strong(struct doca_gpu_dev_rdma_r* rdma_r,
                                                           struct doca_gpu_buf* recv_buf,
                                                           size_t length, uint64_t offset,
                                                           uint32_t flags) {
  if (flags != 0) return DOCA_ERROR_INVALID_VALUE;
  return offload_gpu_rdma_fill(&rdma_r->queue, 0, OFFLOAD_GPU_RDMA_RECEIVE, 0, 0, recv_buf, offset,
                               0, recv_buf != 0 ? length : 0, 0, false);
}

/// Posts all receives that were added.
DOCA_GPU_DEVICE doca_error_t
doca_gpu_dev_rdma_recv_commit_strong(struct doca_gpu_dev_rdma_r* rdma_r) {
  return offload_gpu_rdma_commit(&rdma_r->queue,
                                 offload_gpu_dma_exchange(&rdma_r->queue.requested, 0, 0));
}

/// Waits for the receives that were posted. `num_ops`: set to the number of those that have ended
/// since the wait before. `imm_val` and `conn_idx`, with room for all of them, or NULL: set to the
/// immediate of each, 0 without one, and to the index of its connection.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_rdma_recv_wait_all(
    struct doca_gpu_dev_rdma_r* rdma_r, enum doca_gpu_dev_rdma_recv_wait_flags flags,
    uint32_t* num_ops, uint32_t* imm_val, uint32_t* conn_idx) {
  struct offload_gpu_rdma_queue* queue = &rdma_r->queue;
  const doca_error_t status =
      offload_gpu_rdma_wait(queue, flags == DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, num_ops);
  if (status != DOCA_SUCCESS) return status;
  for (uint32_t i = 0; i < *num_ops; ++i, ++queue->taken) {
    const struct offload_gpu_rdma_event* event = &queue->events[queue->taken & queue->mask];
    if (imm_val != 0) imm_val[i] = event->immediate;
    if (conn_idx != 0) conn_idx[i] = event->connection;
  }
  return DOCA_SUCCESS;
}

#endif
