#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/client/event_flag.hpp"
#include "core/clock.hpp"
#include "core/signals.hpp"
#include "net/socket.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// The opener of a run's connections. One thread.
class Connector {
 public:
  /// Resolves the server's name; throws core::Error (not_found). connect() gives up at `deadline`,
  /// after at least one attempt, or when a signal arrives, which is left for `signals.take()`.
  /// `tls`: the connections speak it.
  Connector(const std::string& host, std::uint16_t port, core::TimePoint deadline,
            const core::Signals& signals, std::optional<net::TlsContext> tls = {});

  /// A connection, its TLS handshake done; an invalid one if a signal arrived first. Retries with
  /// back-off while the server is not up. Throws core::Error: timed_out, with the last attempt's
  /// reason; bad_message, if the two do not agree in TLS, for which nothing is tried again.
  net::Stream connect();

 private:
  /// Tries each address once; invalid if all failed, and then reason_ says why.
  net::Stream try_all();
  net::Stream try_one(const net::SocketAddress& address);
  core::Fd open_socket(const net::SocketAddress& address, core::TimePoint until);
  net::Stream start_tls(core::Fd socket, const net::SocketAddress& address, core::TimePoint until);
  /// Waits for `event`, a signal, or `until`. Returns whether the event came first.
  bool wait(const EventFlag& event, core::TimePoint until);

  std::string host_;
  std::vector<net::SocketAddress> addresses_;
  core::TimePoint deadline_;
  std::optional<net::TlsContext> tls_;
  std::string reason_;
  EventFlag interrupted_;
  progress::Engine engine_;
};

}  // namespace offload::client
