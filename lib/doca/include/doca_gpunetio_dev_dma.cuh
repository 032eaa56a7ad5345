/// Copies that kernels ask for. Without the CUDA compiler the functions are for threads, which
/// stand in for the kernels of a host GPU.
///
/// A context of doca_dma whose data path is on the GPU has a ring of copies, which the library's
/// thread carries out, in order, on the GPU's copy engines. Threads of one kernel may use it at the
/// same time.
#ifndef DOCA_GPUNETIO_DEV_DMA_CUH_
#define DOCA_GPUNETIO_DEV_DMA_CUH_

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_comch.cuh"

/// The copies of a context, in memory of the GPU. Its members are the library's own.
struct doca_gpu_dma {
  struct offload_gpu_comch_queue queue;
};

/// Replaces the word by `desired` if it is `expected`. Returns what it was.
DOCA_GPU_DEVICE uint32_t offload_gpu_dma_exchange(uint32_t* word, uint32_t expected,
                                                  uint32_t desired) {
#ifdef __CUDA_ARCH__
  return atomicCAS(word, expected, desired);
#elif defined(__CUDACC__)
  return *word == expected ? (*word = desired, expected) : *word;
#else
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
#endif
}

/// Adds a copy of `length` bytes between two buffers, from an offset in each on. It begins after a
/// commit. DOCA_ERROR_AGAIN: all entries are in use. DOCA_ERROR_BAD_STATE: the context is not
/// running; DOCA_ERROR_IO_FAILED: it has failed, because an earlier copy was not within its mmap,
/// or its destination is read-only.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_dma_memcpy(struct doca_gpu_dma* dma,
                                                     struct doca_gpu_buf* src_buf,
                                                     uint64_t src_offset,
                                                     struct doca_gpu_buf* dst_buf,
                                                     uint64_t dst_offset, size_t length) {
  struct offload_gpu_comch_queue* queue = &dma->queue;
  if (length > UINT32_MAX) return DOCA_ERROR_INVALID_VALUE;
  uint32_t place = offload_gpu_dma_exchange(&queue->requested, 0, 0);
  for (;;) {
    const uint64_t events = offload_gpu_comch_load(&queue->words->events);
    if ((events >> 32) != 0) return static_cast<doca_error_t>(events >> 32);
    if (place - static_cast<uint32_t>(events) > queue->mask) return DOCA_ERROR_AGAIN;
    const uint32_t found = offload_gpu_dma_exchange(&queue->requested, place, place + 1);
    if (found == place) break;
    place = found;
  }
  struct offload_gpu_comch_request* request = &queue->requests[place & queue->mask];
  request->address = src_buf->address + src_offset;
  request->mkey = src_buf->mkey;
  request->length = static_cast<uint32_t>(length);
  request->destination = dst_buf->address + dst_offset;
  request->destination_mkey = dst_buf->mkey;
  return DOCA_SUCCESS;
}

/// Starts all copies that were added. The caller has synchronised with the threads that added them,
/// and none adds one meanwhile. The errors are those of
/// doca_gpu_dev_dma_memcpy().
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_dma_commit(struct doca_gpu_dma* dma) {
  struct offload_gpu_comch_queue* queue = &dma->queue;
  const uint64_t events = offload_gpu_comch_load(&queue->words->events);
  if ((events >> 32) != 0) return static_cast<doca_error_t>(events >> 32);
  offload_gpu_comch_store(&queue->words->requests,
                          offload_gpu_dma_exchange(&queue->requested, 0, 0));
  return DOCA_SUCCESS;
}

#endif
