#pragma once

#include <cstddef>

/// Tells a sanitizer of each switch from one fiber's stack to another's; does nothing without a
/// sanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define OFFLOAD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OFFLOAD_ASAN 1
#endif
#endif

#ifdef OFFLOAD_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace offload::simulation {

/// A stack that is not running: AddressSanitizer's state of it.
struct StackState {
  void* fake = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
};

/// Call this before a switch from `from` to `to`. `for_ever`: `from` never runs again.
inline void begin_switch([[maybe_unused]] StackState& from, [[maybe_unused]] const StackState& to,
                         [[maybe_unused]] bool for_ever = false) {
#ifdef OFFLOAD_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.fake, to.bottom, to.size);
#endif
}
/// Call this on `to`, which continues. `from`: its bounds are stored here.
inline void end_switch([[maybe_unused]] StackState& to, [[maybe_unused]] StackState* from) {
#ifdef OFFLOAD_ASAN
  __sanitizer_finish_switch_fiber(to.fake, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->size);
#endif
}

}  // namespace offload::simulation
