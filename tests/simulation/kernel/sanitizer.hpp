#pragma once

#include <cstddef>

/// What a sanitizer has to be told when one fiber's stack is left for another's; nothing without
/// one.
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

/// A stack that is not the running one: AddressSanitizer's part of it.
struct StackState {
  void* fake = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
};

/// Before `from` is left for `to`. `for_ever`: it is not come back to.
inline void begin_switch([[maybe_unused]] StackState& from, [[maybe_unused]] const StackState& to,
                         [[maybe_unused]] bool for_ever = false) {
#ifdef OFFLOAD_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.fake, to.bottom, to.size);
#endif
}
/// On `to`, which goes on. `from`: where its bounds are noted.
inline void end_switch([[maybe_unused]] StackState& to, [[maybe_unused]] StackState* from) {
#ifdef OFFLOAD_ASAN
  __sanitizer_finish_switch_fiber(to.fake, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->size);
#endif
}

}  // namespace offload::simulation
