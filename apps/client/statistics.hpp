#pragma once

#include <cstdint>

#include "apps/client/load_thread.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

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

}  // namespace offload::client
