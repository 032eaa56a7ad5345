#pragma once

namespace offload::core {

/// Makes what the calling thread wrote before visible before it reads anything after: store-load
/// order, which neither x86 nor release and acquire give.
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
