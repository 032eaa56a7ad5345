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

/// Opens the connections of a run.
class Connector {
 public:
  /// Resolves the server's name. Throws core::Error (not_found).
  /// `deadline`: when to give up; at least one attempt is made. A signal ends that sooner, and is
  /// left for `signals.take()`.
  Connector(const std::string& host, std::uint16_t port, core::TimePoint deadline,
            const core::ShutdownSignals& signals);

  /// A connected, non-blocking socket, trying again with back-off while the server is not up; an
  /// invalid one if a signal came first. Throws core::Error (timed_out, with the last attempt's
  /// reason).
  core::Fd connect();

 private:
  /// One attempt at each address; invalid if none worked, then reason_ says why.
  core::Fd try_all();
  core::Fd try_one(const net::SocketAddress& address);
  /// Until `event`, a signal, or `until`; whether it was the event.
  bool wait(const EventFlag& event, core::TimePoint until);

  std::string host_;
  std::vector<net::SocketAddress> addresses_;
  core::TimePoint deadline_;
  std::string reason_;
  EventFlag interrupted_;
  progress::Engine engine_;
};

}  // namespace offload::client
