#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/server/view/thread_metrics.hpp"
#include "comch/session/worker_channel.hpp"
#include "core/clock.hpp"
#include "core/counter.hpp"
#include "core/log.hpp"
#include "progress/engine_times.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/routes.hpp"
#include "telemetry/turn_watch.hpp"

namespace offload::server {

/// The server's metrics and state. The control thread writes them, the view's thread reads them;
/// the I/O threads write their ThreadMetrics.
class ServerMetrics final : public telemetry::Source {
 public:
  /// `services`: that of each I/O thread. Where there are several, metrics of threads and channels
  /// have the label `service`.
  ServerMetrics(std::vector<std::string> services, core::Duration stall_limit, bool is_shown);

  [[nodiscard]] const std::shared_ptr<ThreadMetrics>& thread(std::size_t index) const {
    return threads_[index];
  }

  /// Returns the latest events; any thread may add.
  [[nodiscard]] const std::shared_ptr<telemetry::EventLog>& events() const { return events_; }

  // The control thread's:

  /// For its engine, to count its turns in.
  [[nodiscard]] progress::EngineTimes& control() noexcept { return control_; }
  /// It has made a turn. To be called as often as TurnWatch says.
  void note_turn(core::TimePoint now, bool served, bool draining);
  /// `name`: the beginning of its lines in the log.
  void note_attached(const comch::AttachedWorker& worker, std::string name);
  /// Sets the number of channels that it serves from now on.
  void note_serving(comch::WorkerId worker, std::uint32_t channels);
  void note_lost(comch::WorkerId worker);
  /// Sets the fingerprint of the newest key; empty if workers prove none.
  void note_newest_key(std::string key);
  void note_command() noexcept { work_[0].commands += 1; }
  void note_reload() noexcept { work_[0].reloads += 1; }
  /// Sets whether a command has told balancers not to choose this server.
  void note_drained(bool drained);
  /// Sets whether there is room for another client.
  void note_room(bool has_room) noexcept { full_.store(!has_room, std::memory_order_relaxed); }

  void collect(telemetry::Exposition& page) const override;
  [[nodiscard]] telemetry::Condition health() const override { return turns_.health(); }
  [[nodiscard]] telemetry::Condition readiness() const override;
  [[nodiscard]] nlohmann::json status() const override;
  void trace(telemetry::Trace& trace) const override;

 private:
  struct Worker {
    std::string name;
    std::string backend;
    std::string key;
    std::uint32_t channels;
    std::chrono::system_clock::time_point attached;
  };

  /// The work of the control thread.
  struct Work {
    std::uint64_t attached = 0;
    std::uint64_t lost = 0;
    std::uint64_t commands = 0;
    std::uint64_t reloads = 0;
  };

  void report_stall(core::TimePoint now);
  [[nodiscard]] telemetry::Labels with_service(telemetry::Labels labels, std::size_t thread) const;
  void collect_clients(telemetry::Exposition& page) const;
  void collect_times(telemetry::Exposition& page) const;
  void collect_workers(telemetry::Exposition& page) const;

  std::vector<std::string> services_;  ///< of each thread
  bool has_several_services_;
  std::vector<std::shared_ptr<ThreadMetrics>> threads_;
  progress::EngineTimes control_;
  std::array<Work, 2> work_;  ///< of its turn now, and of the one before
  std::uint64_t stalls_ = 0;  ///< of it that were told
  core::RateLimit stall_log_;
  telemetry::TurnWatch turns_{"control thread"};
  std::atomic<bool> served_{false};  ///< relaxed, as is the next: each is told by itself
  std::atomic<bool> draining_{false};
  std::atomic<bool> drained_{false};
  std::atomic<bool> full_{false};
  core::Counter attaches_;
  core::Counter losses_;
  std::shared_ptr<telemetry::EventLog> events_ = std::make_shared<telemetry::EventLog>();
  mutable std::mutex mutex_;
  std::string newest_key_;                     ///< under the mutex, too
  std::map<comch::WorkerId, Worker> workers_;  ///< under the mutex: those that are attached
};

}  // namespace offload::server
