#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/connect_attempt.hpp"
#include "apps/client/load/interval.hpp"
#include "apps/client/load/load_plan.hpp"
#include "apps/client/load/pacer.hpp"
#include "apps/client/load/request_log.hpp"
#include "apps/client/load/run_control.hpp"
#include "apps/client/requests/request_pool.hpp"
#include "core/intrusive_list.hpp"
#include "memory/block_cache.hpp"
#include "progress/engine.hpp"

namespace offload::client {

class Flow;

/// The state that all load threads of a run share.
struct LoadRunContext {
  const RequestPool& pool;
  const Target& target;
  RunControl& control;
  RequestLog* log = nullptr;  ///< null: none
  std::size_t address = 0;    ///< of the target's, the one that the first connection has
};

/// The longest batch, in bytes: all its requests have one time stamp, so a longer one would blur
/// the latencies.
inline constexpr std::size_t kBatchBytes = std::size_t{256} << 10;

/// The state that the flows of a load thread share.
struct LoadShare {
  LoadShare(const LoadPlan& its_plan, const LoadRunContext& run);

  /// Adds the time since the last call to the integral of requests in flight. To be called before
  /// that number changes, and when an interval ends.
  void account_in_flight(core::TimePoint now) noexcept {
    interval->in_flight_ns +=
        static_cast<double>(in_flight) * static_cast<double>((now - in_flight_since).count());
    in_flight_since = now;
  }

  LoadPlan plan;
  const RequestPool& pool;
  const Target& target;
  std::size_t address;  ///< of the target's, for connecting again
  RunControl& control;
  std::uint32_t longest_batch;  ///< requests
  progress::Engine engine;
  std::size_t receive_size;                      ///< of a connection's buffer
  memory::BlockCache cache;                      ///< for received bytes
  std::vector<std::byte> datagrams;              ///< room to receive, with --udp
  core::TimePoint end = core::TimePoint::max();  ///< of sending, if the plan has a duration
  std::size_t running = 0;                       ///< flows that are not over
  std::optional<Pacer> pacer;                    ///< of an open loop, from the start on
  /// An open loop's flows that have room for requests, the one that waits longest first.
  core::IntrusiveList<Flow> with_room;
  std::size_t with_room_count = 0;
  core::TimePoint next_check{};  ///< not later than the earliest deadline of a connection
  Interval* interval = nullptr;  ///< to record in
  std::uint64_t in_flight = 0;
  core::TimePoint in_flight_since{};
  bool sending_ended = false;
  RequestLogWriter log;
  std::string fault;  ///< the first one, for people; empty if there was none
  bool is_stopped_by_fault = false;
};

}  // namespace offload::client
