#pragma once

#include <string>
#include <vector>

#include "apps/client/event_flag.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/signals.hpp"
#include "net/socket.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// The opener of a run's connections. One thread.
class Connector {
 public:
  /// Resolves the server's name; throws core::Error (not_found). connect() gives up at `deadline`,
  /// after at least one attempt, or when a signal arrives, which is left for `signals.take()`.
  Connector(const std::string& host, std::uint16_t port, core::TimePoint deadline,
            const core::Signals& signals);

  /// A connected, non-blocking socket; an invalid one if a signal arrived first. Retries with
  /// back-off while the server is not up. Throws core::Error (timed_out, with the last attempt's
  /// reason).
  core::Fd connect();

 private:
  /// Tries each address once; invalid if all failed, and then reason_ says why.
  core::Fd try_all();
  core::Fd try_one(const net::SocketAddress& address);
  /// Waits for `event`, a signal, or `until`. Returns whether the event came first.
  bool wait(const EventFlag& event, core::TimePoint until);

  std::string host_;
  std::vector<net::SocketAddress> addresses_;
  core::TimePoint deadline_;
  std::string reason_;
  EventFlag interrupted_;
  progress::Engine engine_;
};

}  // namespace offload::client
