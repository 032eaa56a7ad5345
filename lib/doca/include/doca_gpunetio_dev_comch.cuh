/// Consumers and producers of DOCA Comch in kernels. Without the CUDA compiler the functions are
/// for threads, which stand in for the kernels of a host GPU.
///
/// A kernel and the library's thread share two rings in pinned memory of the host, for requests of
/// the kernel and for events. Each handle is for one thread of a kernel at a time. The library
/// checks all that a kernel writes: an invalid address, key or length stops the context.
#ifndef DOCA_GPUNETIO_DEV_COMCH_CUH_
#define DOCA_GPUNETIO_DEV_COMCH_CUH_

#include <stdint.h>

#include "doca_comch_consumer.h"
#include "doca_comch_producer.h"
#include "doca_error.h"
#include "doca_gpunetio_dev_buf.cuh"

enum doca_gpu_dev_comch_wait_flags {
  DOCA_GPU_COMCH_WAIT_FLAG_NB = 0,  ///< look once
  DOCA_GPU_COMCH_WAIT_FLAG_B = 1    ///< wait until there is something, or the context stops
};

/// The most immediate bytes of a message.
#define OFFLOAD_GPU_COMCH_IMMEDIATE 32

/// An entry that a kernel writes: a buffer to receive into, a message to send, or bytes to copy.
struct offload_gpu_comch_request {
  uint64_t address;
  uint32_t mkey;
  uint32_t length;
  union {
    uint64_t message_id;   ///< of a message, as the next members
    uint64_t destination;  ///< of a copy
  };
  union {
    uint32_t consumer;
    uint32_t destination_mkey;
  };
  uint32_t immediate_length;
  uint8_t immediate[OFFLOAD_GPU_COMCH_IMMEDIATE];
};

/// An entry that the library writes: a message that has arrived, or the end of a send or a copy.
struct offload_gpu_comch_event {
  uint64_t address;
  uint32_t mkey;
  uint32_t length;
  uint64_t message_id;  ///< of the end of a send
  uint32_t reserved;
  uint32_t immediate_length;
  uint8_t immediate[OFFLOAD_GPU_COMCH_IMMEDIATE];
};

/// The words by which the sides tell each other how far they are, each in separate lines of a
/// cache.
struct offload_gpu_comch_words {
  uint64_t requests;  ///< number of requests written, modulo 2^32
  uint64_t padding[15];
  uint64_t events;  ///< number of events written, modulo 2^32, below the state: 0, or the error of
                    ///< all calls
  uint64_t padding_of_events[15];
};

/// A consumer or producer of a kernel, in memory of the GPU.
struct offload_gpu_comch_queue {
  struct offload_gpu_comch_words* words;
  struct offload_gpu_comch_request* requests;
  struct offload_gpu_comch_event* events;
  uint32_t mask;       ///< entries of a ring less 1
  uint32_t requested;  ///< requests written
  uint32_t taken;      ///< events taken
  uint32_t state;      ///< as last seen
};
struct doca_comch_gpu_consumer {
  struct offload_gpu_comch_queue queue;
};
struct doca_comch_gpu_producer {
  struct offload_gpu_comch_queue queue;
};

/// Reads a word that the CPU writes, before the reads that follow.
DOCA_GPU_DEVICE uint64_t offload_gpu_comch_load(const uint64_t* from) {
#ifdef __CUDA_ARCH__
  uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#elif defined(__CUDACC__)
  return *from;
#else
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

/// Writes a word that the CPU reads, behind the writes before.
DOCA_GPU_DEVICE void offload_gpu_comch_store(uint64_t* to, uint64_t value) {
#ifdef __CUDA_ARCH__
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#elif defined(__CUDACC__)
  *to = value;
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

/// Returns whether there is an event; DOCA_ERROR_AGAIN if there is none yet.
DOCA_GPU_DEVICE doca_error_t offload_gpu_comch_wait(struct offload_gpu_comch_queue* queue,
                                                    enum doca_gpu_dev_comch_wait_flags flags) {
  do {
    const uint64_t word = offload_gpu_comch_load(&queue->words->events);
    queue->state = static_cast<uint32_t>(word >> 32);
    if (static_cast<uint32_t>(word) != queue->taken) return DOCA_SUCCESS;
    if (queue->state != 0) return static_cast<doca_error_t>(queue->state);
  } while (flags == DOCA_GPU_COMCH_WAIT_FLAG_B);
  return DOCA_ERROR_AGAIN;
}

/// Returns whether there is room for a request; DOCA_ERROR_AGAIN if not.
DOCA_GPU_DEVICE doca_error_t offload_gpu_comch_room(const struct offload_gpu_comch_queue* queue) {
  if (queue->state != 0) return static_cast<doca_error_t>(queue->state);
  return queue->requested - queue->taken > queue->mask ? DOCA_ERROR_AGAIN : DOCA_SUCCESS;
}

/// Posts a buffer. Messages fill posted buffers in order. DOCA_ERROR_AGAIN: all entries are
/// posted, or were received and not taken. DOCA_ERROR_BAD_STATE once a call has seen
/// that the context is not running, DOCA_ERROR_IO_FAILED if it has failed; so below.
DOCA_GPU_DEVICE doca_error_t doca_dev_gpu_comch_consumer_post_recv(
    struct doca_comch_gpu_consumer* consumer, uint32_t mkey, uintptr_t addr, uint32_t recv_len) {
  struct offload_gpu_comch_queue* queue = &consumer->queue;
  const doca_error_t status = offload_gpu_comch_room(queue);
  if (status != DOCA_SUCCESS) return status;
  struct offload_gpu_comch_request* request = &queue->requests[queue->requested & queue->mask];
  request->address = addr;
  request->mkey = mkey;
  request->length = recv_len;
  offload_gpu_comch_store(&queue->words->requests, ++queue->requested);
  return DOCA_SUCCESS;
}

/// Takes the next message: sets key and address of its buffer, and its length. `imm_data`: set to
/// its immediate bytes, which are valid until the next post; NULL: they are dropped.
/// `imm_data_len`: the most that the caller takes, then their number; DOCA_ERROR_INVALID_VALUE if
/// there are more, and the message stays. DOCA_ERROR_AGAIN with DOCA_GPU_COMCH_WAIT_FLAG_NB: there
/// is none.
DOCA_GPU_DEVICE doca_error_t doca_dev_gpu_comch_consumer_recv_wait(
    struct doca_comch_gpu_consumer* consumer, uint32_t* mkey, uintptr_t* addr, uint32_t* recv_len,
    uint8_t** imm_data, uint32_t* imm_data_len, enum doca_gpu_dev_comch_wait_flags flags) {
  struct offload_gpu_comch_queue* queue = &consumer->queue;
  const doca_error_t status = offload_gpu_comch_wait(queue, flags);
  if (status != DOCA_SUCCESS) return status;
  struct offload_gpu_comch_event* event = &queue->events[queue->taken & queue->mask];
  if (imm_data_len != 0) {
    if (event->immediate_length > *imm_data_len) return DOCA_ERROR_INVALID_VALUE;
    *imm_data_len = event->immediate_length;
  }
  if (imm_data != 0) *imm_data = event->immediate;
  *mkey = event->mkey;
  *addr = event->address;
  *recv_len = event->length;
  ++queue->taken;
  return DOCA_SUCCESS;
}

/// Sends the bytes of a buffer and immediate ones, which are copied, to a consumer of the peer,
/// behind earlier messages of this producer. The buffer must not change until the end of the send.
/// DOCA_ERROR_AGAIN: as many sends as the producer has tasks have not ended, or their end was not
/// polled. DOCA_ERROR_INVALID_VALUE: too many immediate bytes.
DOCA_GPU_DEVICE doca_error_t doca_dev_gpu_comch_producer_send(
    struct doca_comch_gpu_producer* producer, uint32_t mkey, uintptr_t addr, uint32_t send_length,
    uint8_t* imm_data, uint32_t imm_data_len, uint32_t consumer_id, uint64_t user_msg_id) {
  struct offload_gpu_comch_queue* queue = &producer->queue;
  if (imm_data_len > OFFLOAD_GPU_COMCH_IMMEDIATE) return DOCA_ERROR_INVALID_VALUE;
  const doca_error_t status = offload_gpu_comch_room(queue);
  if (status != DOCA_SUCCESS) return status;
  struct offload_gpu_comch_request* request = &queue->requests[queue->requested & queue->mask];
  request->address = addr;
  request->mkey = mkey;
  request->length = send_length;
  request->message_id = user_msg_id;
  request->consumer = consumer_id;
  request->immediate_length = imm_data_len;
  for (uint32_t i = 0; i < imm_data_len; ++i) request->immediate[i] = imm_data[i];
  offload_gpu_comch_store(&queue->words->requests, ++queue->requested);
  return DOCA_SUCCESS;
}

/// Takes the end of the oldest send, and sets its id: the system has all of its bytes.
/// DOCA_ERROR_AGAIN with DOCA_GPU_COMCH_WAIT_FLAG_NB: none has ended.
DOCA_GPU_DEVICE doca_error_t
doca_dev_gpu_comch_producer_poll(struct doca_comch_gpu_producer* producer, uint64_t* user_msg_id,
                                 enum doca_gpu_dev_comch_wait_flags flags) {
  struct offload_gpu_comch_queue* queue = &producer->queue;
  const doca_error_t status = offload_gpu_comch_wait(queue, flags);
  if (status != DOCA_SUCCESS) return status;
  *user_msg_id = queue->events[queue->taken & queue->mask].message_id;
  ++queue->taken;
  return DOCA_SUCCESS;
}

#endif
