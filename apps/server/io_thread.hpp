#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/server/admission/retry_coordinator.hpp"
#include "apps/server/admission/waiting_addresses.hpp"
#include "apps/server/channel_selector.hpp"
#include "apps/server/client_table.hpp"
#include "apps/server/handshakes.hpp"
#include "apps/server/mailbox.hpp"
#include "apps/server/request_path.hpp"
#include "apps/server/view/thread_metrics.hpp"
#include "comch/session/worker_channel.hpp"
#include "core/cpu.hpp"
#include "core/log.hpp"
#include "progress/engine.hpp"
#include "telemetry/event_log.hpp"

namespace offload::server {

/// An I/O thread's report about a worker.
struct WorkerFailure {
  comch::WorkerId worker;
  std::string reason;
  bool stuck;  ///< it is attached and does not answer; else its data connection has ended
};

/// One I/O thread: it carries out the control thread's orders and drives its engine, on which its
/// clients and the requester of one channel work. Threads share none of it.
class IoThread final : progress::Pollable {
 public:
  /// A limit of memory, in bytes.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

  struct Config {
    std::uint32_t index;
    int cpu;  ///< to run on; -1: anywhere
    RequestPath::Limits limits;
    core::Duration worker_timeout;   ///< a worker that owes a response for this long is stuck
    core::Duration request_timeout;  ///< a request unanswered for this long is refused; 0: never
    core::Duration spin;
    /// Called on the thread: a worker cannot be used any more.
    std::function<void(WorkerFailure failure)> on_worker_failed;
    /// Called on the thread when serving() has changed.
    std::function<void()> on_moved;
    ClientLimits client_limits{};
    /// Shared by all threads.
    std::shared_ptr<ClientMemory> client_memory = std::make_shared<ClientMemory>(kUnlimited, 1);
    /// Also records stalls and culprits, which the log has too; null: no event log.
    std::shared_ptr<telemetry::EventLog> events{};
    /// This thread's metrics.
    std::shared_ptr<ThreadMetrics> metrics = std::make_shared<ThreadMetrics>();
    /// Shared by all threads, as `waiting` is.
    std::shared_ptr<RetryState> retries = std::make_shared<RetryState>();
    std::shared_ptr<WaitingAddresses> waiting = std::make_shared<WaitingAddresses>();
  };

  /// `channel`: its one of the first worker that attached.
  IoThread(const Config& config, std::shared_ptr<comch::WorkerChannel> channel);
  ~IoThread();

  /// Throws Error if it cannot be pinned.
  void start();

  // Instead of start(), for a caller that is the thread itself, such as a test of single turns:

  /// Before the first turn. Throws Error.
  void open() { path_.requester().open(engine_); }
  /// One turn, which sleeps until `deadline` at most where there is no work. Returns whether there
  /// was.
  bool turn(core::TimePoint deadline) { return engine_.run_once(deadline); }

  // For the control thread, before and while it runs:

  /// A worker has attached, with this channel for the thread.
  void add_worker(std::shared_ptr<comch::WorkerChannel> channel);
  /// It is gone.
  void remove_worker(comch::WorkerId worker, comch::WorkerLoss loss);
  /// This one gets the requests, once the one before has answered all that it has or is gone; 0:
  /// none, requests wait.
  void select_worker(comch::WorkerId worker);
  /// The worker that has the requests now; 0: none.
  [[nodiscard]] comch::WorkerId serving() const noexcept {
    return serving_.load(std::memory_order_relaxed);
  }
  /// Sets whether requests are refused: there has been no worker for --worker-timeout.
  void set_expired(bool expired);
  /// Other time limits than those of the configuration.
  void set_timeouts(core::Duration worker, core::Duration request);
  /// Sets RequestPath::Limits::slow_request.
  void set_slow_request(core::Duration limit);
  /// Clients that come from now on speak TLS.
  void set_tls(net::TlsContext context);
  /// A client's socket: connected, non-blocking. Not after drain().
  void take(core::Fd socket, Admission admission = {});
  /// Clients that it was given and that are not gone.
  [[nodiscard]] std::uint64_t client_count() const noexcept {
    return given_ - gone_.load(std::memory_order_relaxed);
  }
  /// Stop reading, also from who was given before; answer what was read.
  void drain() noexcept;
  /// Returns whether the last connection is gone.
  [[nodiscard]] bool drained() const noexcept { return drained_.load(std::memory_order_acquire); }
  /// Throws what has ended the thread before its time, if anything has.
  void check() const;
  /// Ends it, drained or not, and logs what it did.
  void stop() noexcept;

 private:
  /// From the control thread, carried out in this order.
  struct Orders {
    std::vector<std::shared_ptr<comch::WorkerChannel>> added;
    std::vector<std::pair<comch::WorkerId, comch::WorkerLoss>> removed;
    std::optional<comch::WorkerId> selected;
    std::optional<bool> expired;
    std::optional<std::pair<core::Duration, core::Duration>> timeouts;  ///< worker, request
    std::optional<core::Duration> slow_request;
    std::optional<net::TlsContext> tls;
    std::vector<std::pair<core::Fd, Admission>> sockets;
    bool drain = false;
  };

  void run();

  bool poll() override;
  // The requester expects the responses and is woken for them.
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override;
  void disarm() override {}

  template <class Change>
  void give_order(Change change);
  /// All that the thread had done at the end of a turn.
  struct Work {
    std::uint64_t requests;
    std::uint64_t answers;
    std::uint64_t received;     ///< bytes
    std::uint64_t transmitted;  ///< bytes
    std::uint64_t gone;         ///< clients
  };

  void publish();
  void report_stall(const Work& before);
  bool apply_orders();
  void drain_clients();
  void look_after_worker();
  void note_loss();
  void report_culprit(const Admission& admission);
  void hold_waiting();
  [[nodiscard]] bool retry_suspects();
  void check_times();
  void add_channel(std::shared_ptr<comch::WorkerChannel> channel);
  void take_in(core::Fd socket, Admission admission);
  void add_client(net::Stream stream, Admission admission);
  void log_turned_away(std::uint64_t number, std::string_view address, std::string_view reason);
  [[nodiscard]] std::optional<protocol::Refusal> refusal() const noexcept;

  Config config_;
  progress::Engine engine_;
  ClientTable clients_;
  Handshakes handshakes_;
  RequestPath path_;
  ChannelSelector selector_;
  RetryCoordinator retries_;
  std::uint64_t held_changes_ = 0;  ///< of config_.waiting, that were looked at
  core::TimePoint held_until_ = core::TimePoint::max();  ///< the first client that is paused
  comch::WorkerLoss loss_{};                             ///< of the last worker that served
  bool expired_ = false;
  comch::WorkerId failed_ = 0;  ///< the last worker that was reported
  core::RunTime next_check_{};
  bool draining_ = false;
  std::uint64_t taken_ = 0;     ///< of the sockets that it was given
  std::uint64_t accepted_ = 0;  ///< of those, what became clients
  core::RateLimit turned_away_log_;

  // For the control thread, which looks when a client comes: apart from what the thread uses
  // with every message.
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> gone_{0};  ///< written by the thread
  std::atomic<comch::WorkerId> serving_{0};  ///< written by the thread; then on_moved()
  std::atomic<bool> drained_{false};         ///< release by the thread, acquire in drained()
  std::atomic<bool> stop_order_{false};      ///< relaxed; then a join
  std::atomic<bool> has_failed_{false};      ///< release by the thread, acquire in check()
  std::exception_ptr failure_;               ///< written by the thread, before has_failed_

  Mailbox<Orders> orders_;
  std::uint64_t given_ = 0;  ///< the control thread's: sockets by take()
  std::thread thread_;
  std::array<Work, 2> work_{};  ///< at the end of the last turn and of the one before
  std::optional<core::TimePoint> full_since_;  ///< the channel is full: since, or until when told
  std::uint64_t stalls_ = 0;                   ///< that were told
  core::RateLimit stall_log_;
};

}  // namespace offload::server
