#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/client/request_pool.hpp"
#include "apps/client/run_control.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "memory/block_cache.hpp"
#include "metrics/latency_histogram.hpp"
#include "net/receive_buffer.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// How much is sent on each connection, and how long is waited.
struct LoadPlan {
  std::uint64_t requests = 0;              ///< unused with `duration`
  std::optional<core::Duration> duration;  ///< send for so long, then wait for what is due
  std::uint32_t max_in_flight = 1;
  core::Duration response_timeout{};
};

/// What a load thread has to show at its end: all of its connections together.
struct LoadResult {
  std::uint64_t sent = 0;      ///< requests sent, or begun as part of a batch
  std::uint64_t answered = 0;  ///< responses that came, a wrong one included
  std::uint64_t valid = 0;     ///< of these, the right ones
  std::uint64_t tx_bytes = 0;  ///< on the wire, frame headers included
  std::uint64_t rx_bytes = 0;
  core::TimePoint last_response{};  ///< when the last valid one was read
  metrics::LatencyHistogram latency;
  std::string fault;  ///< why it ended early; empty if it did not
};

/// What the connections of a load thread have in common.
struct LoadShare {
  LoadPlan plan;
  const RequestPool& pool;
  const RunControl& control;
  std::uint32_t longest_batch;  ///< requests
  progress::Engine engine;
  memory::BlockCache cache;  ///< of what they receive
  core::TimePoint end{};     ///< of sending, with a duration
  std::size_t running = 0;   ///< connections that are not over
  LoadResult result;
};

/// One connection with requests in flight, refilled as responses come in. All requests of a batch
/// are sent by one send() and all responses that are there are read by one recv(); the clock is
/// read once for each, so a latency runs from before the send() of its batch to after the recv() of
/// its response. Nothing is copied. It holds memory for what it received only while a response is
/// not whole. Its load thread only.
class LoadConnection final : progress::EventHandler {
 public:
  /// `name`: what messages call it. `socket`: connected, non-blocking. `number`: seeds the choice
  /// of requests. `share` must outlive it.
  LoadConnection(std::string name, std::uint32_t number, core::Fd socket, LoadShare& share);

  /// Sends the first requests.
  void start();
  /// Sends no more; what is due is still awaited.
  void stop_sending() noexcept;
  /// Whether all was answered, or it ended early.
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// When the server has been silent for too long. Precondition: !over().
  [[nodiscard]] core::TimePoint deadline() const noexcept {
    return last_sign_ + share_.plan.response_timeout;
  }
  /// The server is silent: a fault.
  void fail_silent(core::TimePoint now);

 private:
  /// A request in flight.
  struct Pending {
    core::TimePoint sent;
    std::uint32_t number = 0;  ///< in the pool
  };

  [[nodiscard]] std::uint64_t in_flight() const noexcept { return sent_ - answered_; }
  [[nodiscard]] std::uint32_t next_batch() const noexcept;
  Pending& pending(std::uint64_t request) noexcept { return pending_[request & pending_mask_]; }

  void on_events(std::uint32_t epoll_events) override;
  void send_requests();
  void start_batch(std::uint32_t count);
  bool flush();
  void watch_for_room(bool wanted);
  void receive_responses();
  void check_responses();

  void end_if_done() noexcept;
  void end() noexcept;
  void fail(const std::string& what);
  void fail_connection(const std::string& what);

  LoadShare& share_;
  const core::Fd socket_;
  std::vector<Pending> pending_;  ///< a ring, indexed by request number
  const std::uint64_t pending_mask_;
  net::ReceiveBuffer received_;
  std::span<const std::byte> unsent_;  ///< of the batch under way; refers into the pool
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t request_limit_;  ///< send no request beyond
  std::uint64_t random_;
  core::TimePoint now_{};        ///< the clock when a batch was last sent or read
  core::TimePoint last_sign_{};  ///< of life, from the server; or when it first had to give one
  bool over_ = false;
  bool watches_for_room_ = false;  ///< in the socket, for what is unsent
  int send_error_ = 0;             ///< errno of a failed send()
  std::string name_;
};

}  // namespace offload::client
