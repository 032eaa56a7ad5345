#pragma once

#include <ucontext.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <utility>

/// Runs code in steps of single instructions: a test does between any two of them all that another
/// thread may do there. It needs x86-64 and no sanitizer, whose own instructions would be steps
/// too. OFFLOAD_CAN_STEP_THROUGH says that step_through() is there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define OFFLOAD_CAN_STEP_THROUGH 1

namespace offload::support {

/// Runs `work` on this thread, an instruction at a time; calls `between` before the first one and
/// after each one, until it returns false. `between` runs in a signal handler, on the same thread:
/// it may call whatever `work` does not call itself, such as malloc(3).
template <class Work>
void step_through(const Work& work, std::function<bool()> between) {
  constexpr long long kTrapFlag = 0x100;
  static std::function<bool()> handler;
  handler = std::move(between);
  struct sigaction trap {};
  trap.sa_flags = SA_SIGINFO;
  trap.sa_sigaction = [](int, siginfo_t*, void* context) {
    auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    if (!handler()) flags &= ~kTrapFlag;
  };
  struct sigaction before {};
  ::sigaction(SIGTRAP, &trap, &before);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  asm volatile("nop" ::: "memory");  // the first trap comes before any instruction of `work`
  work();
  asm volatile("" ::: "memory");
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~std::uint64_t{kTrapFlag});
  ::sigaction(SIGTRAP, &before, nullptr);
}

}  // namespace offload::support

#endif
