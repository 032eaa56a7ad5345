#pragma once

#include <cstdint>

#include "metrics/latency_histogram.hpp"

namespace offload::bench {

/// The time that each step of a message takes, one message in flight.
struct HopTimes {
  metrics::LatencyHistogram fill;     ///< the payload is written into the slot, before it is posted
  metrics::LatencyHistogram total;    ///< from posted to response seen: the sum of the next four
  metrics::LatencyHistogram to_gpu;   ///< from posted until a poll of the GPU has found it
  metrics::LatencyHistogram answer;   ///< from found until the answer is written, up to a fence
  metrics::LatencyHistogram fence;    ///< fence and header of a long answer; else 0
  metrics::LatencyHistogram to_host;  ///< from published until the host has seen it
  metrics::LatencyHistogram look;     ///< the GPU's poll that found it
};

/// Sends messages of `size` bytes through a channel to one block of threads and back, and checks
/// each answer. Throws core::Error for a wrong one, and if none comes in 20 s.
///
/// The offset between the GPU's clock and the host's is estimated from the messages themselves,
/// again for each few hundred, as NTP does: the shortest ways there and back are taken to be
/// equally long.
HopTimes measure_hop(std::uint32_t size, std::uint32_t messages);

}  // namespace offload::bench
