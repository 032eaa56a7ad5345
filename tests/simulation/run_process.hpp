#pragma once

#include <unistd.h>

#include "tests/simulation/kernel/sanitizer.hpp"

/// libgcov's, in a build that counts lines.
extern "C" void __gcov_dump() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)

namespace offload::simulation {

/// Seconds of real time after which a run, which is a process of its own, has failed.
#ifdef OFFLOAD_ASAN
inline constexpr unsigned kRealLimit = 200;
#else
inline constexpr unsigned kRealLimit = 20;
#endif

/// Of a run: nothing is destroyed, as killed programs have left their parts behind.
[[noreturn]] inline void end_run() {
  if (__gcov_dump != nullptr) __gcov_dump();
  ::_exit(0);
}

}  // namespace offload::simulation
