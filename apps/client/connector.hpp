#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/signals.hpp"
#include "net/socket.hpp"

namespace offload::client {

/// Opens the connections of a run.
class Connector {
 public:
  /// Resolves the server's name. Throws core::Error (not_found).
  /// `deadline`: when to give up; at least one attempt is made.
  Connector(const std::string& host, std::uint16_t port, core::TimePoint deadline);

  /// A connected, non-blocking socket, trying again with back-off while the server is not up; an
  /// invalid one if a signal came first (it is left for `signals.take()`). Throws core::Error
  /// (timed_out, with the last attempt's reason).
  core::Fd connect(const core::ShutdownSignals& signals);

 private:
  /// One attempt at each address; invalid if none worked, then reason_ says why.
  core::Fd try_all(const core::ShutdownSignals& signals);
  core::Fd try_one(const net::SocketAddress& address, const core::ShutdownSignals& signals);

  std::string host_;
  std::vector<net::SocketAddress> addresses_;
  core::TimePoint deadline_;
  std::string reason_;
  bool interrupted_ = false;
};

}  // namespace offload::client
