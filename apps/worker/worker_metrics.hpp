#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/counter.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/view.hpp"

namespace offload::worker {

/// What one worker, of one GPU, counts. Its control thread alone writes, any may read.
struct WorkerCounts {
  core::Counter attached;  ///< 1 while a server's channels are served
  core::Counter attaches;
  core::Counter losses;    ///< of the server, not by agreement
  core::Counter channels;  ///< served now
  core::Counter faults;    ///< requests that the back end refused
  core::Counter stuck;     ///< channels, as the watchdog last found
  /// Of the back end's threads since the program began, ns; all 0 where it does not know.
  core::Counter busy;
  core::Counter polling;
  core::Counter asleep;
  telemetry::EventLog events;
};

/// What the worker program tells of itself: its workers, and whether its main thread turns.
class WorkerMetrics final : public telemetry::Source {
 public:
  /// `name`: of the worker, its GPU's or empty. Before the view is there.
  void add(std::string name, std::shared_ptr<const WorkerCounts> counts);

  /// The main thread's, at least every kLongestTurn / 2.
  void note_turn(core::TimePoint now, bool leaving) noexcept;

  /// After so long without a turn the main thread is not well.
  static constexpr core::Duration kLongestTurn = core::seconds(5);

  void collect(telemetry::Exposition& page) const override;
  [[nodiscard]] telemetry::Condition health() const override;
  /// Whether every worker is attached.
  [[nodiscard]] telemetry::Condition readiness() const override;
  [[nodiscard]] nlohmann::json status() const override;
  [[nodiscard]] nlohmann::json trace() const override;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const WorkerCounts> counts;
  };

  std::vector<Entry> workers_;
  core::Counter turned_;              ///< when: core::Clock's count
  std::atomic<bool> leaving_{false};  ///< relaxed: told by itself
};

}  // namespace offload::worker
