#pragma once

#include <cstdint>

namespace offload::support {

/// True if operator new is that of operator_new.cpp, which is among the sources of a test program.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kOwnOperatorNew = false;  // sanitizers have their own
#else
inline constexpr bool kOwnOperatorNew = true;
#endif

/// The allocations of a thread.
struct Allocations {
  std::uint64_t count = 0;
  int fails_at = 0;  ///< the number of the one from now on that fails, from 1; 0: none
};
inline thread_local Allocations allocations;

}  // namespace offload::support
