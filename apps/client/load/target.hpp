#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "core/clock.hpp"
#include "net/socket.hpp"
#include "net/tls/context.hpp"

namespace offload::client {

/// The target of a run's connections. Immutable once made: all threads read it.
struct Target {
  std::vector<net::SocketAddress> addresses;  ///< of the same server
  std::optional<net::TlsContext> tls;         ///< the connections speak it
};

/// How long one attempt may take: an unanswered SYN must not take all the time, as the server may
/// come up.
inline constexpr core::Duration kAttemptTime = std::chrono::seconds(2);
/// Pauses between attempts: the first, doubled each time until the longest.
inline constexpr core::Duration kFirstPause = std::chrono::milliseconds(10);
inline constexpr core::Duration kLongestPause = std::chrono::milliseconds(500);

}  // namespace offload::client
