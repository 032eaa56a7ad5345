#pragma once

namespace offload::core {

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

}  // namespace offload::core
