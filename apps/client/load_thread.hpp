#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/client/request_pool.hpp"
#include "apps/client/run_control.hpp"
#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "core/fd.hpp"
#include "memory/block_cache.hpp"
#include "metrics/latency_histogram.hpp"
#include "net/receive_buffer.hpp"
#include "progress/engine.hpp"

namespace offload::client {

/// How much a load thread sends, and how long it waits.
struct LoadPlan {
  std::uint64_t requests = 0;              ///< unused with `duration`
  std::optional<core::Duration> duration;  ///< send for so long, then wait for what is due
  std::uint32_t max_in_flight = 1;
  core::Duration response_timeout{};
};

/// What a load thread has to show at its end.
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

/// One connection with requests in flight, refilled as responses come in. All requests of a batch
/// are sent by one send() and all responses that are there are read by one recv(); the clock is
/// read once for each, so a latency runs from before the send() of its batch to after the recv() of
/// its response. Nothing is allocated and nothing copied while it runs; with nothing to send or
/// read its engine sleeps.
class alignas(core::kCacheLinePair) LoadThread final : progress::EventHandler {
 public:
  /// `number` is what messages call it. `socket`: connected, non-blocking. `pool` and `control`
  /// must outlive it.
  LoadThread(std::uint32_t number, core::Fd socket, const LoadPlan& plan, const RequestPool& pool,
             const RunControl& control);

  /// Runs from now to the end: all answered, a fault, or control.stop() and at most a second more
  /// for what is due. Once.
  void run();

  /// After run().
  [[nodiscard]] const LoadResult& result() const noexcept { return result_; }

  /// Valid responses so far. Any thread.
  [[nodiscard]] std::uint64_t progress() const noexcept {
    return progress_.load(std::memory_order_relaxed);
  }

 private:
  /// A request in flight.
  struct Pending {
    core::TimePoint sent;
    std::uint32_t number = 0;  ///< in the pool
  };

  /// Ends the engine's sleep, and that is all there is to it.
  class Bell final : public progress::EventHandler {
   public:
    void on_events(std::uint32_t) override {}
  };

  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return result_.sent - result_.answered; }
  [[nodiscard]] std::uint32_t next_batch() const noexcept;
  Pending& pending(std::uint64_t request) noexcept { return pending_[request & pending_mask_]; }

  void on_events(std::uint32_t epoll_events) override;
  void begin_drain();
  void stop_sending() noexcept;
  void send_requests();
  void start_batch(std::uint32_t count);
  bool flush();
  void watch_for_room(bool wanted);
  void receive_responses();
  void check_responses();
  [[nodiscard]] core::TimePoint deadline() const noexcept;
  void check_deadline();

  void fail(const std::string& what);
  void fail_connection(const std::string& what);

  const std::uint32_t number_;
  const core::Fd socket_;
  const LoadPlan plan_;
  const RequestPool& pool_;
  const RunControl& control_;
  const std::uint32_t longest_batch_;  ///< requests

  progress::Engine engine_;
  Bell stop_bell_;
  bool watches_for_room_ = false;  ///< in the socket, for what is unsent

  std::vector<Pending> pending_;  ///< a ring, indexed by request number
  const std::uint64_t pending_mask_;
  memory::BlockCache cache_;  ///< of received_, which keeps its block to the end
  net::ReceiveBuffer received_;
  std::span<const std::byte> unsent_;  ///< of the batch under way; refers into the pool
  std::uint64_t request_limit_;        ///< send no request beyond
  std::uint64_t random_;
  int send_error_ = 0;  ///< errno of a failed send()

  core::TimePoint now_{};        ///< the clock when a batch was last sent or read
  core::TimePoint end_{};        ///< of sending, with a duration
  core::TimePoint last_sign_{};  ///< of life, from the server; or when it first had to give one
  std::optional<core::TimePoint> drain_end_;
  bool gave_up_ = false;  ///< after a stop: what is due is not waited for any more

  LoadResult result_;
  std::atomic<std::uint64_t> progress_{0};
};

}  // namespace offload::client
