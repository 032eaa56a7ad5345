#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// Accesses of device code to words in global memory (the GPU's own or mapped host memory) that
/// others use at the same time. Each name says order and scope, as PTX does (PTX ISA, chapter
/// "Memory Consistency Model"): `sys` where a CPU or a copy engine is the other side, `gpu` where
/// only threads of this GPU are. The compiler neither removes nor moves one, nor keeps a value.
///
/// Inline PTX, not cuda::atomic_ref: that one takes generic addresses and looks whether they are
/// local at each access.
namespace offload::kernels {

#if defined(__CUDACC__)

__device__ inline std::uint32_t load_relaxed_gpu(const std::uint32_t* from) {
  std::uint32_t value = 0;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}

__device__ inline std::uint64_t load_relaxed_gpu(const std::uint64_t* from) {
  std::uint64_t value = 0;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}

__device__ inline std::uint32_t load_relaxed_sys(const std::uint32_t* from) {
  std::uint32_t value = 0;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}

__device__ inline std::uint64_t load_relaxed_sys(const std::uint64_t* from) {
  std::uint64_t value = 0;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}

__device__ inline std::uint64_t load_acquire_sys(const std::uint64_t* from) {
  std::uint64_t value = 0;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}

__device__ inline void store_relaxed_gpu(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value)
               : "memory");
}

__device__ inline void store_relaxed_sys(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value)
               : "memory");
}

__device__ inline void store_relaxed_sys(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(value)
               : "memory");
}

__device__ inline void store_release_sys(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value)
               : "memory");
}

__device__ inline void store_release_sys(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(value)
               : "memory");
}

/// Orders the caller's earlier reads and writes before its later ones, for all observers.
__device__ inline void fence_acq_rel_sys() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/// Sets *to to `value` if that is greater.
__device__ inline void max_relaxed_gpu(std::uint64_t* to, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "l"(value)
               : "memory");
}

/// Returns the value before.
__device__ inline std::uint64_t fetch_add_acq_rel_sys(std::uint64_t* to, std::uint64_t count) {
  std::uint64_t before = 0;
  asm volatile("atom.acq_rel.sys.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(to)), "l"(count)
               : "memory");
  return before;
}

#endif

}  // namespace offload::kernels
