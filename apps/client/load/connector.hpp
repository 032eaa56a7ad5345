#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/client/load/connect_attempt.hpp"
#include "apps/client/load/event_flag.hpp"
#include "core/clock.hpp"
#include "core/signals.hpp"
#include "metrics/latency_histogram.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// The addresses of a server's name, which is asked for again until `deadline` while it is unknown:
/// a server that is about to start may not have its name yet. None if a signal arrives first, which
/// is left for `signals.take()`. Throws core::Error (not_found): the last attempt's.
std::vector<net::SocketAddress> resolve_by(core::TimePoint deadline, const std::string& host,
                                           std::uint16_t port, const core::Signals& signals);

/// The opener of a run's first connections, one after the other. One thread.
class Connector {
 public:
  /// connect() gives up at `deadline`, after at least one attempt, or when a signal arrives, which
  /// is left for `signals.take()`. `target` must outlive it.
  Connector(const Target& target, core::TimePoint deadline, const core::Signals& signals);

  /// A connection, its TLS handshake done; an invalid one if a signal arrived first. Retries with
  /// back-off while the server is not up. Throws core::Error: timed_out, with the last attempt's
  /// reason; bad_message, if the two do not agree in TLS, for which nothing is tried again.
  net::Stream connect();

  /// The number of the target's address that the last connection has.
  [[nodiscard]] std::size_t address() const noexcept { return address_; }
  /// Returns the durations of the successful attempts.
  [[nodiscard]] const metrics::LatencyHistogram& times() const noexcept { return times_; }

 private:
  /// Tries each address once; invalid if all failed, and then reason_ says why.
  net::Stream try_all();
  net::Stream try_one(const net::SocketAddress& address);
  /// Waits for `event`, a signal, or `until`. Returns whether the event came first.
  bool wait(const EventFlag& event, core::TimePoint until);

  const Target& target_;
  core::TimePoint deadline_;
  std::size_t address_ = 0;
  std::string reason_;
  metrics::LatencyHistogram times_;
  EventFlag interrupted_;
  progress::Engine engine_;
};

}  // namespace offload::client
