#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "core/clock.hpp"
#include "core/counter.hpp"
#include "telemetry/routes.hpp"

namespace offload::telemetry {

/// Detects whether a thread turns, for /healthz. That thread notes its turns; others ask.
///
/// After a pause of the whole process (SIGSTOP, a freezer, a paused machine) each last turn is too
/// long ago, and the asking thread may be the first one that runs. So a thread that seems to hang
/// gets time for another turn, while the asking one waits.
class TurnWatch {
 public:
  /// The thread is unhealthy after this time without a turn.
  static constexpr core::Duration kLongestTurn = std::chrono::seconds(5);
  /// The longest wait of health() for another turn: long enough on a busy machine, and shorter than
  /// probes wait for an answer, 1 s by default in Kubernetes.
  static constexpr core::Duration kGrace = std::chrono::milliseconds(500);

  /// `thread`: its name, for people. It turns now.
  explicit TurnWatch(std::string thread) : thread_(std::move(thread)) { note(core::Clock::now()); }

  /// It has made a turn. To be called by that thread, at least every kLongestTurn / 2.
  void note(core::TimePoint now) noexcept {
    turned_.set(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  }

  /// Returns whether the thread turns. Waits once for a thread that hangs, and not again until it
  /// has turned. Any thread.
  [[nodiscard]] Condition health() const;

 private:
  std::string thread_;
  core::Counter turned_;  ///< when: core::Clock's count
  /// Its last turn when it was found to hang. Relaxed: it is told by itself.
  mutable std::atomic<std::uint64_t> last_turn_{0};
};

}  // namespace offload::telemetry
