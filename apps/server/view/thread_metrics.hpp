#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/counter.hpp"
#include "core/cpu.hpp"
#include "progress/engine_times.hpp"
#include "protocol/frame.hpp"
#include "telemetry/histograms.hpp"
#include "telemetry/sample_ring.hpp"

namespace offload::server {

/// Why a client's connection ended: the first reason of several.
enum class ConnectionEnd : std::uint8_t {
  peer,      ///< the client closed it
  reset,     ///< it broke
  timeout,   ///< one of the limits on clients' time
  protocol,  ///< the client broke the protocol
  memory,    ///< it held too much memory, or there was none
  shutdown,  ///< the server stops
};
inline constexpr std::array<const char*, 6> kConnectionEnds{"peer",     "reset",  "timeout",
                                                            "protocol", "memory", "shutdown"};

/// Why a TLS handshake of a client failed.
enum class HandshakeFailure : std::uint8_t {
  revoked,      ///< the client's certificate is revoked
  certificate,  ///< the client's certificate is refused for another reason
  plain,        ///< the client does not use TLS
  timeout,      ///< the handshake took too long
  other,        ///< such as a client that refuses the server's certificate
};
inline constexpr std::array<const char*, 5> kHandshakeFailures{"revoked", "certificate", "plain",
                                                               "timeout", "other"};

/// When what became of one request, in the ticks of core::Clock (ns).
struct RequestSample {
  std::uint64_t began;    ///< its first bytes came, or were read where the kernel does not tell
  std::uint64_t whole;    ///< its last bytes were read
  std::uint64_t posted;   ///< it was written into the channel
  std::uint64_t seen;     ///< its answer was there
  std::uint64_t written;  ///< the answer was given to the socket
  std::uint64_t length;   ///< of the request, bytes

  /// The ends of its stages: one begins where the one before ends, the first with `began`.
  [[nodiscard]] std::array<std::uint64_t, 4> ends() const { return {whole, posted, seen, written}; }
};
/// The stages between: receiving a long frame, waiting for room in the channel, the worker with the
/// way there and back, sending.
inline constexpr std::array<const char*, 4> kStages{"receive", "queue", "worker", "send"};

/// A slow request that was logged.
struct SlowRequest {
  std::uint64_t took;    ///< ns
  std::uint64_t client;  ///< its number
  std::uint64_t number;  ///< of slow requests of this thread
  std::uint64_t ended;   ///< ns since the epoch
};

/// The counters of one I/O thread. Only that thread writes, once a turn if possible, and any may
/// read. They exist before and after the thread, so that a reader needs to know nothing of threads.
struct alignas(core::kCacheLinePair) ThreadMetrics {
  /// More than the highest number of a protocol::Refusal.
  static constexpr std::size_t kRefusals = 32;

  /// Set if there may be a reader, or slow requests are logged: then connections note arrivals.
  /// Once the thread runs, only it reads this, and sets it when SIGHUP gives it --slow-request.
  bool is_shown = false;
  core::Counter connections;  ///< now
  core::Counter accepted;
  std::array<core::Counter, kConnectionEnds.size()> closed;
  std::array<core::Counter, kHandshakeFailures.size()> tls_failures;
  core::Counter requests;                        ///< whole frames that were taken
  telemetry::SizeHistogram request_bytes;        ///< of their payloads
  core::Counter responses;                       ///< of the worker, good ones
  std::array<core::Counter, kRefusals> refused;  ///< error frames, by their protocol::Refusal
  core::Counter culprits;                        ///< requests that workers were lost with
  core::Counter slow_requests;                   ///< that took at least --slow-request
  core::Counter received;                        ///< bytes
  core::Counter transmitted;                     ///< bytes, sent or waiting for the client
  core::Counter slots;                           ///< of the channel: requests that it may have
  core::Counter in_flight;                       ///< of them, unanswered now
  core::Counter channel_full;                    ///< ns in which it had room for none more
  telemetry::DurationHistogram duration;         ///< of requests that are sampled, all stages
  std::array<telemetry::DurationHistogram, kStages.size()> stages;
  telemetry::SampleRing<RequestSample> samples;
  /// The last one in each bucket of `duration`.
  std::array<telemetry::SampleRing<SlowRequest, 1>,
             telemetry::DurationHistogram::kBounds.size() + 1>
      last_slow;
  progress::EngineTimes times;

  void count_refusal(protocol::Refusal reason) noexcept {
    refused[static_cast<std::size_t>(reason) % kRefusals].add();
  }
};

}  // namespace offload::server
