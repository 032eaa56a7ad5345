#pragma once

#include <cstdint>

#include "metrics/latency_histogram.hpp"

namespace offload::bench {

/// Where the time of a message goes, one in flight at a time.
struct HopTimes {
  metrics::LatencyHistogram fill;     ///< its payload is written into the slot; before it is posted
  metrics::LatencyHistogram total;    ///< from posted to its response being seen: the sum of
  metrics::LatencyHistogram to_gpu;   ///< posted, until a look of the GPU has found it;
  metrics::LatencyHistogram answer;   ///< found, until the answer is written but for a fence;
  metrics::LatencyHistogram fence;    ///< of a long answer, and its header; else 0;
  metrics::LatencyHistogram to_host;  ///< published, until the host has seen it
  metrics::LatencyHistogram look;     ///< of the GPU, the one that found it
};

/// Messages of `size` bytes through a channel to one block of threads and back, each answer
/// checked: throws core::Error for a wrong one, and if none comes in seconds.
///
/// The GPU's clock is set against the host's by the messages themselves, anew for each few hundred:
/// of the shortest ways there and back among them, both are taken for equally long.
HopTimes measure_hop(std::uint32_t size, std::uint32_t messages);

}  // namespace offload::bench
