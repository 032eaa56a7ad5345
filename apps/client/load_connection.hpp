#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/client/request_pool.hpp"
#include "apps/client/run_control.hpp"
#include "core/clock.hpp"
#include "memory/block_cache.hpp"
#include "metrics/latency_histogram.hpp"
#include "net/receive_buffer.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// The amount of requests of each connection, and the limit of waiting.
struct LoadPlan {
  std::uint64_t requests = 0;              ///< unused with `duration`
  std::optional<core::Duration> duration;  ///< of sending; then outstanding responses are awaited
  std::uint32_t max_in_flight = 1;
  core::Duration response_timeout{};
};

/// The results of a load thread, summed over its connections.
struct LoadResult {
  std::uint64_t sent = 0;      ///< requests sent, including a batch that was sent in part
  std::uint64_t answered = 0;  ///< responses received, including a wrong one
  std::uint64_t valid = 0;     ///< right responses
  std::uint64_t tx_bytes = 0;  ///< on the wire, frame headers included
  std::uint64_t rx_bytes = 0;
  core::TimePoint last_response{};  ///< when the last valid response was read
  metrics::LatencyHistogram latency;
  std::string fault;  ///< why the thread ended early; empty if it did not
};

/// The state that the connections of a load thread share.
struct LoadShare {
  LoadPlan plan;
  const RequestPool& pool;
  const RunControl& control;
  std::uint32_t longest_batch;  ///< requests
  progress::Engine engine;
  memory::BlockCache cache;  ///< for received bytes
  std::size_t receive_size;  ///< of a connection's buffer
  core::TimePoint end{};     ///< of sending, if the plan has a duration
  std::size_t running = 0;   ///< connections that are not over
  LoadResult result;
};

/// A connection that keeps a window of requests in flight. One send() sends a batch of requests and
/// one recv() reads all responses that have arrived; the clock is read once for each, so a latency
/// lasts from before the send() of its batch to after the recv() of its response. Payloads are not
/// copied. It holds a receive buffer only while a response is incomplete. Used by its load thread
/// only.
class LoadConnection final : progress::EventHandler {
 public:
  /// `name`: for messages. `number`: the seed of the choice of requests. `stream`: connected,
  /// its handshake done. `share` must outlive it.
  LoadConnection(std::string name, std::uint32_t number, net::Stream stream, LoadShare& share);

  /// Sends the first requests.
  void start();
  /// Sends no more requests; outstanding responses are still awaited.
  void stop_sending() noexcept;
  /// Whether every request was answered, or the connection ended early.
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// The time at which the server will have been silent for too long. Precondition: !over().
  [[nodiscard]] core::TimePoint deadline() const noexcept {
    return last_sign_ + share_.plan.response_timeout;
  }
  /// Ends the connection with the fault that the server is silent.
  void fail_silent(core::TimePoint now);

 private:
  /// A request in flight.
  struct Pending {
    core::TimePoint sent;
    std::uint32_t number = 0;  ///< of the request in the pool
  };

  [[nodiscard]] std::uint64_t in_flight() const noexcept { return sent_ - answered_; }
  [[nodiscard]] std::uint32_t next_batch() const noexcept;
  Pending& pending(std::uint64_t request) noexcept { return pending_[request & pending_mask_]; }

  void on_events(std::uint32_t epoll_events) override;
  void send_requests();
  void start_batch(std::uint32_t count);
  bool flush();
  void watch_for_room(bool wanted);
  bool receive_responses();
  void check_responses();

  void end_if_done() noexcept;
  void end() noexcept;
  void fail(const std::string& what);
  void fail_connection(const std::string& what);

  LoadShare& share_;
  net::Stream stream_;
  std::vector<Pending> pending_;  ///< a ring, indexed by request number
  const std::uint64_t pending_mask_;
  net::ReceiveBuffer received_;
  std::span<const std::byte> unsent_;  ///< the rest of the current batch, in the pool's memory
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t request_limit_;  ///< requests to send in all
  std::uint64_t random_;
  core::TimePoint now_{};        ///< the clock when a batch was last sent or read
  core::TimePoint last_sign_{};  ///< last receive, or the first send with nothing in flight
  bool over_ = false;
  bool watches_for_room_ = false;  ///< whether EPOLLOUT is watched, for unsent_
  std::string send_error_;         ///< of a failed send()
  std::string name_;
};

}  // namespace offload::client
