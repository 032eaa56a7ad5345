#pragma once

#include <cstdint>

#include "kernels/platform.hpp"

/// Accesses to words that others use at the same time: of device code to global memory (the GPU's
/// own or mapped host memory), and of CPU threads that run the same source. Each name says order
/// and scope, as PTX does (PTX ISA, chapter "Memory Consistency Model"): `sys` where a CPU or a
/// copy engine is the other side, `gpu` where only threads of this GPU are. The compiler neither
/// removes nor moves one, nor keeps a value.
///
/// Inline PTX, not cuda::atomic_ref: that one takes generic addresses and looks whether they are
/// local at each access.
namespace offload::kernels {

#if defined(__CUDA_ARCH__)

// R: the constraint of a register of that size.
#define OFFLOAD_LOAD(ORDER, SCOPE, SIZE, R)                              \
  OFFLOAD_HOST_DEVICE inline std::uint##SIZE##_t load_##ORDER##_##SCOPE( \
      const std::uint##SIZE##_t* from) {                                 \
    std::uint##SIZE##_t value = 0;                                       \
    asm volatile("ld." #ORDER "." #SCOPE ".global.u" #SIZE " %0, [%1];"  \
                 : "=" R(value)                                          \
                 : "l"(__cvta_generic_to_global(from))                   \
                 : "memory");                                            \
    return value;                                                        \
  }
#define OFFLOAD_STORE(ORDER, SCOPE, SIZE, R)                                           \
  OFFLOAD_HOST_DEVICE inline void store_##ORDER##_##SCOPE(std::uint##SIZE##_t* to,     \
                                                          std::uint##SIZE##_t value) { \
    asm volatile("st." #ORDER "." #SCOPE ".global.u" #SIZE                             \
                 " [%0], %1;" ::"l"(__cvta_generic_to_global(to)),                     \
                 R(value)                                                              \
                 : "memory");                                                          \
  }

/// Orders the caller's earlier reads and writes before its later ones, for all observers.
OFFLOAD_HOST_DEVICE inline void fence_acq_rel_sys() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/// Returns the value before.
OFFLOAD_HOST_DEVICE inline std::uint64_t fetch_add_acq_rel_sys(std::uint64_t* to,
                                                               std::uint64_t count) {
  std::uint64_t before = 0;
  asm volatile("atom.acq_rel.sys.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(to)), "l"(count)
               : "memory");
  return before;
}

#else

#define OFFLOAD_ORDER_relaxed __ATOMIC_RELAXED
#define OFFLOAD_ORDER_acquire __ATOMIC_ACQUIRE
#define OFFLOAD_ORDER_release __ATOMIC_RELEASE
#define OFFLOAD_LOAD(ORDER, SCOPE, SIZE, R)                              \
  OFFLOAD_HOST_DEVICE inline std::uint##SIZE##_t load_##ORDER##_##SCOPE( \
      const std::uint##SIZE##_t* from) {                                 \
    return __atomic_load_n(from, OFFLOAD_ORDER_##ORDER);                 \
  }
#define OFFLOAD_STORE(ORDER, SCOPE, SIZE, R)                                           \
  OFFLOAD_HOST_DEVICE inline void store_##ORDER##_##SCOPE(std::uint##SIZE##_t* to,     \
                                                          std::uint##SIZE##_t value) { \
    __atomic_store_n(to, value, OFFLOAD_ORDER_##ORDER);                                \
  }

OFFLOAD_HOST_DEVICE inline std::uint64_t fetch_add_acq_rel_sys(std::uint64_t* to,
                                                               std::uint64_t count) {
  return __atomic_fetch_add(to, count, __ATOMIC_ACQ_REL);
}

#endif

OFFLOAD_LOAD(relaxed, gpu, 32, "r")
OFFLOAD_LOAD(relaxed, gpu, 64, "l")
OFFLOAD_LOAD(relaxed, sys, 32, "r")
OFFLOAD_LOAD(relaxed, sys, 64, "l")
OFFLOAD_LOAD(acquire, sys, 32, "r")
OFFLOAD_LOAD(acquire, sys, 64, "l")
OFFLOAD_STORE(relaxed, gpu, 32, "r")
OFFLOAD_STORE(relaxed, sys, 32, "r")
OFFLOAD_STORE(relaxed, sys, 64, "l")
OFFLOAD_STORE(release, sys, 32, "r")
OFFLOAD_STORE(release, sys, 64, "l")
#undef OFFLOAD_LOAD
#undef OFFLOAD_STORE
#undef OFFLOAD_ORDER_relaxed
#undef OFFLOAD_ORDER_acquire
#undef OFFLOAD_ORDER_release

/// Loads a word of which most looks find nothing new. Once it has the value that was waited for,
/// acquire_looked_sys() must follow. Relaxed on a GPU, where a fence waits for all that is under
/// way; with acquire on a CPU.
template <class Word>
OFFLOAD_HOST_DEVICE Word look_sys(const Word* from) {
#if defined(__CUDA_ARCH__)
  return load_relaxed_sys(from);
#else
  return load_acquire_sys(from);
#endif
}

/// Makes the caller's earlier look_sys() an acquire.
OFFLOAD_HOST_DEVICE inline void acquire_looked_sys() {
#if defined(__CUDA_ARCH__)
  fence_acq_rel_sys();
#endif
}

}  // namespace offload::kernels
