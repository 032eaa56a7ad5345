#pragma once

#include <string>
#include <vector>

#include "apps/client/load_thread.hpp"
#include "apps/client/options.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// The statistics of a run, summed over all threads.
struct Statistics {
  core::Duration duration{};     ///< from the common start to the last valid response
  std::uint64_t operations = 0;  ///< responses received, right or wrong
  std::uint64_t valid = 0;
  std::uint64_t unanswered = 0;  ///< requests without a response
  std::uint64_t tx_bytes = 0;    ///< of frames, without the headers of TCP and below
  std::uint64_t rx_bytes = 0;
  metrics::LatencyHistogram latency;  ///< of valid responses

  /// Adds the results of one thread. `start`: the common start of all threads.
  void add(const LoadResult& result, core::TimePoint start);

  // Rates over the duration; 0 if that is 0.
  [[nodiscard]] double tx_gib_per_second() const noexcept;
  [[nodiscard]] double rx_gib_per_second() const noexcept;
  [[nodiscard]] double million_operations_per_second() const noexcept;
};

/// The outcome of a run.
struct RunOutcome {
  Statistics statistics;
  std::vector<std::string> faults;  ///< at most one a thread; empty if every response was right
  bool interrupted = false;         ///< by SIGINT or SIGTERM
};

/// Connects, starts all threads at the same time, and waits until they end. A signal or the first
/// fault stops all of them. Throws core::Error if it cannot connect.
RunOutcome run_load(const Options& options, core::Signals& signals);

}  // namespace offload::client
