#pragma once

#include <cstddef>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace offload::core {

/// Size of the unit that caches keep coherent, doubled: adjacent lines are prefetched in pairs, so
/// data of two writers stands this far apart.
inline constexpr std::size_t kCacheLinePair = 128;

/// Tells the core that this is a spin loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The processors that this process may run on, in order.
std::vector<int> allowed_cpus();

/// The NUMA node of `cpu`; -1 where the machine has no NUMA support. Any thread.
int numa_node_of(int cpu) noexcept;

/// Binds the calling thread to `cpu` and its memory to the node of it. Throws Error.
void pin_this_thread(int cpu);

/// Names the calling thread (15 characters are kept), as `ps -L` and debuggers show it.
void name_this_thread(const char* name) noexcept;

}  // namespace offload::core
