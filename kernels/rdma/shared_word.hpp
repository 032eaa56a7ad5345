#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// Words that threads of one GPU, or of one process, share. On a GPU the scope is that GPU, and the
/// memory any that its threads reach, shared memory too. PTX has no sequentially consistent access:
/// one is a fence before it, as the mapping of C++ to PTX has it.
namespace offload::kernels::rdma {

#if defined(__CUDA_ARCH__)

__device__ inline std::uint64_t load_acquire(const std::uint64_t* from) {
  std::uint64_t value = 0;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void store_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ inline std::uint64_t fetch_add_acq_rel(std::uint64_t* to, std::uint64_t value) {
  std::uint64_t before = 0;
  asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(to), "l"(value)
               : "memory");
  return before;
}
__device__ inline void fence_seq_cst() {
  asm volatile("fence.sc.gpu;" ::: "memory");
}
__device__ inline std::uint64_t load_seq_cst(const std::uint64_t* from) {
  fence_seq_cst();
  return load_acquire(from);
}
__device__ inline void store_seq_cst(std::uint64_t* to, std::uint64_t value) {
  fence_seq_cst();
  store_release(to, value);
}
__device__ inline std::uint64_t exchange_seq_cst(std::uint64_t* to, std::uint64_t value) {
  fence_seq_cst();
  std::uint64_t before = 0;
  asm volatile("atom.acq_rel.gpu.exch.b64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(to), "l"(value)
               : "memory");
  return before;
}

/// Replaces the word by `desired` if it is `expected`. Returns what it was.
__device__ inline std::uint64_t compare_exchange_acq_rel(std::uint64_t* word,
                                                         std::uint64_t expected,
                                                         std::uint64_t desired) {
  std::uint64_t before = 0;
  asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(word), "l"(expected), "l"(desired)
               : "memory");
  return before;
}

#else

OFFLOAD_HOST_DEVICE inline std::uint64_t load_acquire(const std::uint64_t* from) {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
OFFLOAD_HOST_DEVICE inline void store_release(std::uint64_t* to, std::uint64_t value) {
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
OFFLOAD_HOST_DEVICE inline std::uint64_t fetch_add_acq_rel(std::uint64_t* to, std::uint64_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL);
}
OFFLOAD_HOST_DEVICE inline std::uint64_t load_seq_cst(const std::uint64_t* from) {
  return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}
OFFLOAD_HOST_DEVICE inline void store_seq_cst(std::uint64_t* to, std::uint64_t value) {
  __atomic_store_n(to, value, __ATOMIC_SEQ_CST);
}
OFFLOAD_HOST_DEVICE inline std::uint64_t exchange_seq_cst(std::uint64_t* to, std::uint64_t value) {
  return __atomic_exchange_n(to, value, __ATOMIC_SEQ_CST);
}

OFFLOAD_HOST_DEVICE inline std::uint64_t compare_exchange_acq_rel(std::uint64_t* word,
                                                                  std::uint64_t expected,
                                                                  std::uint64_t desired) {
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}

#endif

/// Raises the word to `least` if it is less.
OFFLOAD_HOST_DEVICE inline void raise_to(std::uint64_t* word, std::uint64_t least) {
  std::uint64_t value = load_acquire(word);
  while (value < least) {
    const std::uint64_t found = compare_exchange_acq_rel(word, value, least);
    if (found == value) return;
    value = found;
  }
}

}  // namespace offload::kernels::rdma
