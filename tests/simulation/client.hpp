#pragma once

#include <cstdint>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// What clients tell each other and the director.
struct Load {
  std::uint64_t running = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t lost = 0;       ///< connections, where they may be reset
  bool may_be_refused = false;  ///< workers are killed, frozen or leave
  bool may_be_reset = false;
  std::uint32_t longest = 0;  ///< bytes of a request
};

/// One client from its connection to its end, on a fiber: what it asks is drawn from the kernel's
/// numbers, and each answer is checked: its order, its bytes, and a refusal's reason.
void run_client(Load& load, std::uint16_t port, bool lies);

}  // namespace offload::simulation
