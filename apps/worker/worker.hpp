#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/worker/options.hpp"
#include "apps/worker/watchdog.hpp"
#include "backend/backend.hpp"
#include "cli/reload.hpp"
#include "cli/settings_file.hpp"
#include "comch/session/worker_session.hpp"
#include "core/signals.hpp"
#include "progress/engine.hpp"

namespace offload::worker {

/// The worker program: attaches a back end to a server, monitors it, and stops it. It runs in one
/// thread; the back end has threads of its own, or is a GPU.
class Worker final : comch::WorkerSession::Observer, progress::EventHandler {
 public:
  /// Opens the back end. Throws Error.
  Worker(const Options& options, core::Signals& signals);
  ~Worker();

  /// Runs until a signal or the server ends it. Throws Error, also if it cannot attach to a server
  /// within --connect-timeout.
  void run();

 private:
  void on_channels(const std::string& service,
                   std::vector<comch::AttachedChannel> channels) override;
  void on_attached() override;
  void on_start_shutdown() override;
  void on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) override;
  void on_events(std::uint32_t epoll_events) override;

  bool connect();
  void serve();
  void watch_over();
  void check_connections();
  void detach();
  [[nodiscard]] protocol::Hello hello() const;

  Options options_;
  cli::SettingsFile settings_;
  cli::Reload reload_;  ///< at SIGHUP
  core::Signals* signals_;
  comch::Address server_;
  progress::Engine engine_;
  std::vector<comch::AttachedChannel> channels_;  ///< outlive the back end's use of them
  std::unique_ptr<backend::Backend> backend_;
  std::optional<Watchdog> watchdog_;
  std::optional<comch::WorkerSession> link_;
  std::string last_refusal_;    ///< logged once, not at each attempt
  std::exception_ptr failure_;  ///< thrown by the back end in on_channels(), or a refusal
  bool lost_ = false;
  bool finished_ = false;                    ///< the server has asked this worker to shut down
  std::optional<core::TimePoint> leave_by_;  ///< set by a signal
};

}  // namespace offload::worker
