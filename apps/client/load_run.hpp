#pragma once

#include <string>
#include <vector>

#include "apps/client/options.hpp"
#include "apps/client/statistics.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// The outcome of a run.
struct RunOutcome {
  Statistics statistics;
  std::vector<std::string> faults;  ///< at most one a thread; empty if every response was right
  bool interrupted = false;         ///< by SIGINT or SIGTERM
};

/// Connects, starts all threads at the same time, and waits until they end. A signal or the first
/// fault stops all of them. Throws core::Error if it cannot connect.
RunOutcome run_load(const Options& options, core::ShutdownSignals& signals);

}  // namespace offload::client
