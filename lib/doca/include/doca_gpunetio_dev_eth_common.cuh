/// The common part of Ethernet queues in kernels. Without the CUDA compiler the functions are for
/// threads, which stand in for the kernels of a host GPU.
///
/// A kernel and the library's thread share rings in pinned memory of the host. The library checks
/// all that a kernel writes: an invalid address, key or length stops the queue.
#ifndef DOCA_GPUNETIO_DEV_ETH_COMMON_CUH_
#define DOCA_GPUNETIO_DEV_ETH_COMMON_CUH_

#include <stdint.h>

#include "doca_error.h"
#include "doca_gpunetio_dev_comch.cuh"
#include "doca_gpunetio_eth_def.h"

#ifndef __CUDACC__
#include <sched.h>
#include <time.h>
#endif

/// The words of a queue, each in separate lines of a cache.
struct offload_gpu_eth_words {
  uint64_t kernel;  ///< entries that the kernel has given to the library
  uint64_t padding[15];
  uint64_t library;  ///< entries that the library has given back, modulo 2^32, below the state: 0,
                     ///< or the error of all calls
  uint64_t padding_of_library[15];
  uint64_t notified;  ///< of a send queue: ended frames with DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY
  uint64_t padding_of_notified[15];
};

/// Returns the number of this thread in its warp; 0 for threads that stand in for a kernel.
DOCA_GPU_DEVICE uint32_t doca_gpu_dev_eth_get_lane_id(void) {
#ifdef __CUDA_ARCH__
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
#else
  return 0;
#endif
}

/// Returns the time of a clock that never goes back, nanoseconds.
DOCA_GPU_DEVICE uint64_t offload_gpu_eth_now(void) {
#ifdef __CUDA_ARCH__
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#elif defined(__CUDACC__)
  return 0;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
#endif
}

/// Lets others run while a thread waits: the awaited one may need this processor.
DOCA_GPU_DEVICE void offload_gpu_eth_pause(void) {
#ifndef __CUDACC__
  sched_yield();
#endif
}

/// The number of this thread among those of the scope, and how many they are.
template <enum doca_gpu_dev_eth_exec_scope scope>
DOCA_GPU_DEVICE uint32_t offload_gpu_eth_rank(void) {
#ifdef __CUDA_ARCH__
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP) return doca_gpu_dev_eth_get_lane_id();
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK) {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
#endif
  return 0;
}
template <enum doca_gpu_dev_eth_exec_scope scope>
DOCA_GPU_DEVICE uint32_t offload_gpu_eth_size(void) {
#ifdef __CUDA_ARCH__
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP) return DOCA_GPUNETIO_ETH_WARP_SIZE;
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK) return blockDim.x * blockDim.y * blockDim.z;
#endif
  return 1;
}

/// Waits for the threads of the scope; their accesses before it come before those after it.
template <enum doca_gpu_dev_eth_exec_scope scope>
DOCA_GPU_DEVICE void offload_gpu_eth_sync(void) {
#ifdef __CUDA_ARCH__
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP) __syncwarp();
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK) __syncthreads();
#endif
}

/// Returns the value of the scope's first thread, in all of them.
template <enum doca_gpu_dev_eth_exec_scope scope>
DOCA_GPU_DEVICE uint64_t offload_gpu_eth_from_first(uint64_t value) {
#ifdef __CUDA_ARCH__
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP) return __shfl_sync(0xffffffffU, value, 0);
  if (scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK) {
    __shared__ uint64_t of_first;
    __syncthreads();
    if (offload_gpu_eth_rank<scope>() == 0) of_first = value;
    __syncthreads();
    return of_first;
  }
#endif
  return value;
}

/// Adds to a word that threads of the kernel share. Returns its value before. Relaxed: only the
/// number is used.
DOCA_GPU_DEVICE uint64_t offload_gpu_eth_add(uint64_t* to, uint64_t count) {
#ifdef __CUDA_ARCH__
  return atomicAdd(reinterpret_cast<unsigned long long*>(to), count);
#elif defined(__CUDACC__)
  return *to += count;
#else
  return __atomic_fetch_add(to, count, __ATOMIC_RELAXED);
#endif
}

#endif
