#pragma once

#include "results/result.hpp"

/// Whether the figures of a result that was read agree with each other: a file that was edited, or
/// merged by another program, is refused and not shown as a measurement.
namespace offload::results {

/// A member that contradicts others. `place` is empty if there is none.
struct Contradiction {
  std::string place;  ///< "p99"
  std::string why;    ///< "is 5 us, but its histogram has 80"
};

/// `histogram`: its own, decoded.
Contradiction contradiction_in(const Latency& latency, const metrics::LatencyHistogram& histogram);
Contradiction contradiction_in(const IntervalLatency& latency,
                               const metrics::LatencyHistogram& histogram);
Contradiction contradiction_in(const Run& run);
Contradiction contradiction_in(const RepeatEstimate& estimate);

}  // namespace offload::results
