#pragma once

#include <algorithm>
#include <cstddef>

#include "comch/session/pending_connections.hpp"
#include "telemetry/http_server.hpp"

namespace offload::server {

/// Descriptors that clients cannot take up: a worker that attaches needs some, and over a network
/// some for each channel, beside those that strangers there can take up.
inline constexpr int kReservedDescriptors = 16;
inline constexpr int kStrangers = comch::PendingConnections::kMost;
inline constexpr int kReservedAChannel = 4;
inline constexpr int kReservedALocalChannel = 8;  // memory and doorbells

/// How many of `limit` are kept from clients, who have half of them at least. `local`: workers are
/// of this machine. `doors`: endpoints of telemetry.
inline int reserved_descriptors(int limit, bool local, std::size_t channels, int doors) {
  const int count = static_cast<int>(channels);
  const int wanted =
      kReservedDescriptors +
      (local ? kReservedALocalChannel * count : kStrangers + kReservedAChannel * count) +
      doors * telemetry::HttpServer::kDescriptors;
  return std::min(wanted, limit / 2);
}

}  // namespace offload::server
