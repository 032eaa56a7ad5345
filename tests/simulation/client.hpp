#pragma once

#include <cstdint>

#include "tests/simulation/fleet.hpp"

namespace offload::simulation {

/// The state that the clients and the director share.
struct Load {
  std::uint64_t running = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t lost = 0;  ///< connections, where they may be
  // Used without a fleet, which otherwise knows the times:
  bool may_be_refused = false;
  bool may_be_turned_away = false;  ///< no connection
  bool may_be_reset = false;
  // Older connections may end in order, with all read requests answered; or break.
  Time server_ends_at = 0;
  Time server_gone_at = 0;
  std::uint32_t longest = 0;  ///< bytes of a request
  std::uint64_t most_window = 200;
  const Fleet* fleet = nullptr;
};

/// One client from its connection to its end, on a fiber: what it asks is drawn from the kernel's
/// numbers, and each answer is checked: its order, its bytes, and a refusal's reason.
void run_client(Load& load, std::uint16_t port, bool lies);

}  // namespace offload::simulation
