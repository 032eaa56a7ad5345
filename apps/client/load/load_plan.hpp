#pragma once

#include <cstdint>
#include <optional>

#include "apps/client/requests/arrivals.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The load of each load thread, and the limits of waiting.
struct LoadPlan {
  std::uint64_t requests = 0;              ///< of each connection; of the thread in an open loop;
                                           ///< unused with `duration`
  std::optional<core::Duration> duration;  ///< of sending, warm-up included; then outstanding
                                           ///< responses are awaited
  core::Duration warmup{};                 ///< ends a separate interval
  std::uint32_t max_in_flight = 1;         ///< of each connection
  core::Duration connect_timeout{};        ///< until a connection that broke is given up
  core::Duration response_timeout{};
  std::optional<core::Duration> deadline;  ///< a later response is an error
  std::uint64_t reconnect_every = 0;       ///< requests of a connection; 0: it stays
  bool udp = false;                        ///< over UDP: each request is a datagram
  std::uint32_t retries = 0;               ///< then: how often one without an answer is sent again
  bool stop_on_error = true;               ///< else errors are counted
  std::uint64_t seed = 0;  ///< of the choice of requests, with the connection's number
  /// An open loop: the thread's requests become due by these, `requests` of them without a
  /// `duration`. None: a closed loop, where each connection always has as many in flight as it may.
  std::optional<Arrivals> arrivals;
  core::Duration lag_tolerance{};  ///< of an open loop
};

}  // namespace offload::client
