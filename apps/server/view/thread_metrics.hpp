#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/counter.hpp"
#include "core/cpu.hpp"
#include "progress/engine_times.hpp"
#include "protocol/frame.hpp"
#include "telemetry/duration_histogram.hpp"
#include "telemetry/sample_ring.hpp"

namespace offload::server {

/// Why a client's connection ended: the first reason of several.
enum class ConnectionEnd : std::uint8_t {
  peer,      ///< the client closed it
  reset,     ///< it broke
  timeout,   ///< one of the limits on clients' time
  protocol,  ///< the client broke the protocol
  memory,    ///< it held too much memory, or there was none
  shutdown,  ///< the server leaves
};
inline constexpr std::array<const char*, 6> kConnectionEnds{"peer",     "reset",  "timeout",
                                                            "protocol", "memory", "shutdown"};

/// What one I/O thread counts. It alone writes, once a turn where it can, and any may read. It is
/// there before the thread and after it, so that a reader needs to know nothing of threads.
struct alignas(core::kCacheLinePair) ThreadMetrics {
  /// More than the highest number of a protocol::Refusal.
  static constexpr std::size_t kRefusals = 32;

  core::Counter connections;  ///< now
  core::Counter accepted;
  std::array<core::Counter, kConnectionEnds.size()> closed;
  core::Counter requests;                        ///< whole frames that were taken
  core::Counter responses;                       ///< of the worker, good ones
  std::array<core::Counter, kRefusals> refused;  ///< error frames, by their protocol::Refusal
  core::Counter received;                        ///< bytes
  core::Counter transmitted;                     ///< bytes, sent or waiting for the client
  core::Counter slots;                           ///< of the channel: requests that it may have
  core::Counter in_flight;                       ///< of them, unanswered now
  telemetry::DurationHistogram duration;         ///< taken to written; sampled, as the next two
  telemetry::DurationHistogram worker;           ///< taken to seen
  telemetry::DurationHistogram send;             ///< seen to written
  telemetry::SampleRing samples;
  progress::EngineTimes times;

  void count_refusal(protocol::Refusal reason) noexcept {
    refused[static_cast<std::size_t>(reason) % kRefusals].add();
  }
};

}  // namespace offload::server
