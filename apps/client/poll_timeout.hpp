#pragma once

#include <algorithm>
#include <chrono>

#include "core/clock.hpp"

namespace offload::client {

/// `left` in the milliseconds that poll() takes: rounded up, so that it never spins at the end; not
/// below 0; at most a minute, after which callers look again.
inline int poll_timeout(core::Duration left) {
  const auto bounded = std::clamp<core::Duration>(left, core::Duration{}, std::chrono::minutes(1));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(bounded).count());
}

}  // namespace offload::client
