#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/interval.hpp"
#include "apps/client/load/pacer.hpp"
#include "apps/client/load/request_log.hpp"
#include "apps/client/load/run_control.hpp"
#include "apps/client/load/target.hpp"
#include "apps/client/load/think_queue.hpp"
#include "apps/client/requests/arrivals.hpp"
#include "apps/client/requests/request_pool.hpp"
#include "core/clock.hpp"
#include "core/intrusive_list.hpp"
#include "memory/block_cache.hpp"
#include "progress/engine.hpp"

namespace offload::client {

class Flow;

/// The load of each load thread, and the limits of waiting.
struct LoadPlan {
  std::uint64_t requests = 0;              ///< of each connection; of the thread in an open loop;
                                           ///< unused with `duration`
  std::optional<core::Duration> duration;  ///< of sending, warm-up included; then outstanding
                                           ///< responses are awaited
  core::Duration warmup{};                 ///< ends a separate interval
  std::uint32_t max_in_flight = 1;         ///< of each connection
  core::Duration think{};                  ///< of a closed loop, after each response
  core::Duration connect_timeout{};        ///< until a connection that broke is given up
  core::Duration response_timeout{};
  std::optional<core::Duration> deadline;  ///< a later response is an error
  std::uint64_t reconnect_every = 0;       ///< requests of a connection; 0: it stays
  bool udp = false;                        ///< over UDP: each request is a datagram
  std::uint32_t retries = 0;               ///< then: how often one without an answer is sent again
  bool stop_on_error = true;               ///< else errors are counted
  std::uint64_t seed = 0;  ///< of the choice of requests, with the connection's number
  bool in_order = false;   ///< each connection sends the pool's requests in their order instead
  /// An open loop: the thread's requests become due by these, `requests` of them without a
  /// `duration`. None: a closed loop, where each connection always has as many in flight as it may.
  std::optional<Arrivals> arrivals;
  core::Duration lag_tolerance{};  ///< of an open loop
};

/// The state that all load threads of a run share.
struct LoadRunContext {
  const RequestPool& pool;
  const Target& target;
  RunControl& control;
  RequestLog* log = nullptr;  ///< null: none
  std::size_t address = 0;    ///< of the target's, the one that the first connection has
  std::string name = {};      ///< of the kind of requests, for messages; empty: there is one kind
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
  std::optional<ThinkQueue> thinking;            ///< of a closed loop, if its plan says so
  /// An open loop's flows that have room for requests, the one that waits longest first.
  core::IntrusiveList<Flow> with_room;
  std::size_t with_room_count = 0;
  core::TimePoint next_check{};  ///< not later than the earliest deadline of a connection
  Interval* interval = nullptr;  ///< to record in
  std::uint64_t in_flight = 0;
  core::TimePoint in_flight_since{};
  bool sending_ended = false;
  RequestLogWriter log;
  std::string fault;         ///< the first one, for people; empty if there was none
  std::string wrong_answer;  ///< the first one, if `fault` is something else
  bool has_wrong_answer = false;
  bool is_stopped_by_fault = false;
};

}  // namespace offload::client
