#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/worker/data_path.hpp"
#include "apps/worker/hang_detector.hpp"
#include "apps/worker/options.hpp"
#include "apps/worker/watchdog.hpp"
#include "apps/worker/worker_metrics.hpp"
#include "backend/backend.hpp"
#include "comch/session/worker_session.hpp"
#include "progress/engine.hpp"

namespace offload::worker {

/// How a worker ends; an Error is the program's status 1.
enum class WorkerEnd : std::uint8_t {
  done,  ///< it was told to end
  hung,  ///< its back end does not stop: its memory is in use until the process ends
};

/// The settings that may change while a worker runs.
struct WorkerSettings {
  comch::Address server;  ///< with its keys
  core::Duration connect_timeout;
  core::Duration shutdown_timeout;
};

/// One back end, a GPU or this machine's processors, that is attached to a server, and to the next
/// one when that is gone. run() needs a separate thread, which makes all calls of CUDA; the thread
/// that made the worker monitors it.
class Worker final : comch::WorkerSession::Observer, progress::EventHandler {
 public:
  /// `gpu`: its PCI address; empty: the first. `name`: what the log calls this worker; empty where
  /// there is only one. `most_memory`: bytes of this machine that its channels may take. Throws
  /// Error.
  Worker(const Options& options, const backend::Services& services, std::string gpu,
         const std::string& name, std::uint64_t most_memory);

  /// Opens the back end, and serves until leave() or a server ends it. Throws Error, also if no
  /// server lets it in within --connect-timeout.
  WorkerEnd run();

  // For the monitoring thread.

  /// Changes the settings. The next attempt to attach uses the keys and the time limit of a server;
  /// the next end uses the time limit of a shutdown.
  void set(WorkerSettings settings);
  /// Ends run(), once the server has let this worker go.
  void leave() noexcept;
  /// Returns whether the back end serves channels, is about to, or has not stopped yet: then a
  /// server must detach this worker before it ends. Otherwise the process may end at any moment.
  [[nodiscard]] bool serves() const noexcept { return serves_.load(std::memory_order_acquire); }
  /// Returns its counters, for any thread, also after its end.
  [[nodiscard]] std::shared_ptr<const WorkerCounts> counts() const noexcept { return counts_; }
  [[nodiscard]] HangDetector& hang_detector() noexcept { return hang_; }
  /// Returns the beginning of its lines in the log.
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

 private:
  /// Returns how requests and responses travel, for the log.
  [[nodiscard]] std::string described_data_path() const;
  void on_channels(std::vector<comch::AttachedChannel> channels) override;
  void on_attached() override;
  void on_assignment(std::uint32_t channels) override;
  void on_start_shutdown(protocol::ShutdownReason reason) override;
  void on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) override;
  void on_events(std::uint32_t) override {}

  WorkerEnd attach_and_serve();
  void take_settings();
  bool connect();
  void log_reason(core::LogLevel level);
  bool await_channels(core::RunTime deadline);
  void serve();
  void begin_to_leave();
  void watch_over();
  void check_connections();
  bool detach();
  void close();
  void note_detached();
  [[nodiscard]] bool leaving() const noexcept { return leave_.load(std::memory_order_acquire); }
  [[nodiscard]] protocol::Hello hello() const;

  Options options_;
  backend::Services services_;
  DataPath data_path_;  ///< once the back end is there
  std::string gpu_;
  std::string prefix_;          ///< of each line of the log
  std::string session_;         ///< the same, with the number of the session while there is one
  std::uint64_t sessions_ = 0;  ///< so far: servers that have sent their channels
  std::uint64_t most_memory_;
  WorkerSettings settings_;
  progress::Engine engine_;
  std::vector<comch::AttachedChannel> channels_;  ///< outlive the back end's use of them
  std::unique_ptr<backend::Backend> backend_;
  std::shared_ptr<WorkerCounts> counts_ = std::make_shared<WorkerCounts>();
  std::optional<Watchdog> watchdog_;
  std::optional<comch::WorkerSession> link_;
  std::string reason_;             ///< why the last attempt to attach failed
  bool server_is_absent_ = false;  ///< that reason: no server is at the address
  std::string logged_reason_;      ///< of those of this connect()
  core::RunTime log_reason_at_;    ///< or when it is another one
  std::exception_ptr failure_;     ///< thrown by the back end in on_channels(), or a refusal
  bool replaces_;                  ///< until it has attached: then it has taken another's place
  bool lost_ = false;
  bool told_to_stop_ = false;              ///< by the server of this session
  bool finished_ = false;                  ///< and to end
  std::optional<core::RunTime> leave_by_;  ///< since leave()
  HangDetector hang_;
  std::mutex mutex_;
  std::optional<WorkerSettings> new_settings_;  ///< under the mutex, until take_settings()
  std::atomic<bool> leave_{false};              ///< release in leave(), acquire in leaving()
  std::atomic<bool> serves_{false};  ///< release on the worker's thread, acquire in serves()
};

}  // namespace offload::worker
