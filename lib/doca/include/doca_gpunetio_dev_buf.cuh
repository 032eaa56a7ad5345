/// Arrays of buffers in kernels. Without the CUDA compiler the functions are for threads, which
/// stand in for the kernels of a host GPU.
#ifndef DOCA_GPUNETIO_DEV_BUF_CUH_
#define DOCA_GPUNETIO_DEV_BUF_CUH_

#include <stdint.h>

#include "doca_buf_array.h"
#include "doca_error.h"

#ifdef __CUDACC__
#define DOCA_GPU_DEVICE __device__ inline
#else
#define DOCA_GPU_DEVICE inline
#endif

/// A buffer. Its members are the library's own.
struct doca_gpu_buf {
  uint64_t address;
  uint32_t mkey;  ///< names the mmap
  uint32_t reserved;
};

/// The head of an array, before its buffers. Its members are the library's own.
struct doca_gpu_buf_arr {
  uint64_t count;
  uint64_t reserved;
};

/// Finds the buffer with an index. DOCA_ERROR_INVALID_VALUE if there is none.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_buf_get_buf(struct doca_gpu_buf_arr* buf_arr,
                                                      const uint64_t buf_idx,
                                                      struct doca_gpu_buf** buf) {
  if (buf_idx >= buf_arr->count) return DOCA_ERROR_INVALID_VALUE;
  *buf = static_cast<struct doca_gpu_buf*>(static_cast<void*>(buf_arr + 1)) + buf_idx;
  return DOCA_SUCCESS;
}

/// Sets the address of a buffer's first byte.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_buf_get_addr(const struct doca_gpu_buf* buf,
                                                       uintptr_t* addr) {
  *addr = buf->address;
  return DOCA_SUCCESS;
}

/// Sets the key that names the buffer's memory.
DOCA_GPU_DEVICE doca_error_t doca_gpu_dev_buf_get_mkey(const struct doca_gpu_buf* buf,
                                                       uint32_t* mkey) {
  *mkey = buf->mkey;
  return DOCA_SUCCESS;
}

#endif
