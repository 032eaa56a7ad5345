#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/event_flag.hpp"
#include "apps/client/load/flow.hpp"
#include "apps/client/load/interval.hpp"
#include "apps/client/load/load_share.hpp"
#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "metrics/interval_recorder.hpp"
#include "net/stream.hpp"

namespace offload::client {

/// The work of a load thread: its flows, one or more, on an engine that sleeps when there is
/// nothing to send or receive. It records in intervals of a second, which the main thread takes. It
/// allocates only if responses are incomplete on more than a few connections at once, for faults,
/// and for the log of requests.
class alignas(core::kCacheLinePair) LoadThread final {
 public:
  using Recorder = metrics::IntervalRecorder<Interval>;
  static constexpr core::Duration kInterval = std::chrono::seconds(1);

  /// `number`: for messages. `first_connection`: the number of its first connection over all
  /// threads. `streams`: connected; with plan.udp, sockets of open_datagram_socket(). All that
  /// `run` refers to must outlive it.
  LoadThread(std::uint32_t number, std::uint32_t first_connection, std::vector<net::Stream> streams,
             const LoadPlan& plan, const LoadRunContext& run);

  /// Runs from `start` on until every request is answered, a fault, or at most a second after
  /// control.stop(), for outstanding responses. Must be called once. A refusal of the system ends
  /// it with a fault.
  void run(core::TimePoint start) noexcept;

  /// The filled intervals; also after run(), for the rest. The main thread.
  Recorder& recorder() noexcept { return recorder_; }

  /// The first fault, after run(); empty if there was none.
  [[nodiscard]] const std::string& fault() const noexcept { return share_.fault; }
  /// The first wrong answer, if the first fault was something else; empty if there was none.
  [[nodiscard]] const std::string& wrong_answer() const noexcept { return share_.wrong_answer; }
  /// The share of the time of sending that the thread worked or waited for a processor, 0 to 1,
  /// after run().
  [[nodiscard]] double busy() const noexcept { return busy_; }

 private:
  void serve(core::TimePoint start);
  void begin(core::TimePoint start);
  void turn();
  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] core::TimePoint wake_time(core::TimePoint now) const noexcept;
  void act_on_time(core::TimePoint now);
  void begin_drain(core::TimePoint now);
  void end_sending(core::TimePoint now);
  void measure_busy(core::TimePoint now);
  void check_flows(core::TimePoint now);
  void send_due(core::TimePoint now);
  void end_thinking(core::TimePoint now);
  void end_interval(core::TimePoint now);

  LoadShare share_;
  Recorder recorder_;
  EventFlag stop_event_;  ///< ends the engine's sleep; control says whether it stops
  std::vector<std::unique_ptr<Flow>> flows_;
  core::TimePoint interval_grid_{};  ///< whole seconds from here on end intervals
  core::TimePoint next_interval_{};
  std::optional<core::TimePoint> drain_end_;
  bool gave_up_ = false;  ///< after a stop: outstanding responses are no longer awaited
  core::TimePoint start_{};
  core::Duration worked_before_{};  ///< work_time() at the start
  core::Duration spun_{};           ///< waiting for the time of the next request, without sleeping
  double busy_ = 0;
  bool is_busy_measured_ = false;
};

}  // namespace offload::client
