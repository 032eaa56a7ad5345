#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/channel_times.hpp"
#include "core/clock.hpp"
#include "core/counter.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/routes.hpp"
#include "telemetry/turn_watch.hpp"

namespace offload::worker {

/// The counters of one worker, of one GPU. Only its control thread writes, any may read.
class WorkerCounts {
 public:
  core::Counter attached;  ///< 1 while a server's channels are served
  core::Counter attaches;
  core::Counter losses;    ///< of the server, not by agreement
  core::Counter channels;  ///< served now
  core::Counter faults;    ///< requests that the back end refused
  core::Counter stuck;     ///< channels, as the watchdog last found
  telemetry::EventLog events;

  /// Readable names of the device and of the path of messages.
  struct Description {
    std::string backend{};
    std::string data_path{};
  };
  void describe(Description description);
  [[nodiscard]] Description description() const;

  /// Returns the times of the first `count` channels, of any server, since the program began.
  [[nodiscard]] std::vector<backend::SharedChannelTimes> times_of(std::size_t count);
  /// Returns the times of all channels that there ever were.
  [[nodiscard]] std::vector<backend::SharedChannelTimes> times() const;

 private:
  mutable std::mutex mutex_;
  std::vector<backend::SharedChannelTimes> times_;  ///< under the mutex: grows
  Description description_;                         ///< under the mutex
};

/// The metrics of the worker program: its workers, and whether its main thread turns.
class WorkerMetrics final : public telemetry::Source {
 public:
  /// `name`: of the worker, its GPU's or empty. Before the view is there.
  void add(std::string name, std::shared_ptr<const WorkerCounts> counts);

  /// The main thread's, as often as TurnWatch says.
  void note_turn(core::TimePoint now, bool leaving) noexcept;

  void collect(telemetry::Exposition& page) const override;
  [[nodiscard]] telemetry::Condition health() const override { return turns_.health(); }
  /// Returns whether every worker is attached.
  [[nodiscard]] telemetry::Condition readiness() const override;
  [[nodiscard]] nlohmann::json status() const override;
  void trace(telemetry::Trace& trace) const override;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const WorkerCounts> counts;
  };

  std::vector<Entry> workers_;
  telemetry::TurnWatch turns_{"main thread"};
  std::atomic<bool> leaving_{false};  ///< relaxed: told by itself
};

}  // namespace offload::worker
