#pragma once

#include <cstddef>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace offload::core {

/// Distance in bytes between data of two writers: two cache lines, as x86 prefetches adjacent lines
/// in pairs.
inline constexpr std::size_t kCacheLinePair = 128;

/// A pause in a spin loop: PAUSE on x86, ISB on Arm.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// A sequentially consistent fence: the calling thread's earlier stores become visible before its
/// later loads read. That store-load order is what x86 does not keep by itself (SDM volume 3,
/// 8.2.3.4) and what acquire and release do not ask for.
inline void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
  asm volatile("mfence" ::: "memory");  // gcc refuses fences under ThreadSanitizer
#elif defined(__SANITIZE_THREAD__) && defined(__aarch64__)
  asm volatile("dmb ish" ::: "memory");
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/// The processors that this process may run on, in ascending order. Throws Error.
std::vector<int> allowed_cpus();

/// The NUMA node of `cpu`; -1 where the machine has no NUMA support. Any thread.
int numa_node_of(int cpu) noexcept;

/// Binds the calling thread to `cpu`, and prefers that processor's NUMA node for its memory. Throws
/// Error.
void pin_this_thread(int cpu);

/// Names the calling thread (15 characters are kept), as `ps -L` and debuggers show it.
void name_this_thread(const char* name) noexcept;

}  // namespace offload::core
