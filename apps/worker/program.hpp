#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "apps/worker/options.hpp"
#include "apps/worker/worker.hpp"
#include "apps/worker/worker_metrics.hpp"
#include "cli/reload.hpp"
#include "core/service_manager.hpp"
#include "core/signals.hpp"
#include "progress/engine.hpp"

namespace offload::worker {

/// The program's exit status; 2 is a wrong command line. The worst of its workers' counts.
enum class ExitStatus : std::uint8_t { done = 0, failed = 1, hung = 3 };

/// The worker program: a worker for each GPU, on a separate thread (CUDA's current device is the
/// thread's), each with its own attachment to the server, so that the loss of one costs only its
/// channels. The main thread takes the signals and looks for workers that hang. It calls nothing
/// that could, so the program ends in bounded time whatever a driver does.
class Program final : progress::EventHandler {
 public:
  /// Throws Error.
  Program(const Options& options, core::Signals& signals);
  ~Program();

  /// Runs until all workers have ended, or a signal has ended them; prints their errors. Does not
  /// return but ends the process where a thread is in a call that may never return.
  ExitStatus run();

 private:
  struct Running {
    Running(const Options& options, const backend::Services& services, const std::string& gpu,
            const std::string& name, std::uint64_t most_memory)
        : worker(options, services, gpu, name, most_memory) {}

    Worker worker;
    std::thread thread{};
    ExitStatus status = ExitStatus::done;  ///< written before `ended`
    std::atomic<bool> ended{false};        ///< release on the thread, acquire on the main thread
    bool given_up = false;                 ///< it hangs
  };

  void on_events(std::uint32_t epoll_events) override;
  telemetry::CommandResult run_command(const telemetry::AdminCommand& command);
  void begin_to_leave();
  void start_workers();
  void look_after_workers();
  void run_worker(Running& running);
  void look_for_hangs();
  [[nodiscard]] bool over() const;
  ExitStatus finish();

  core::Signals* signals_;
  core::ServiceManager manager_;
  Options options_;
  cli::Reload reload_;      ///< at SIGHUP
  cli::FileDigests files_;  ///< that SIGHUP rereads
  progress::Engine engine_;
  std::deque<Running> workers_;
  bool leaving_ = false;  ///< since a signal
  bool failed_ = false;   ///< the main thread cannot go on
  WorkerMetrics metrics_;
  telemetry::CommandQueue commands_{[this] { engine_.notify(); }};
  std::optional<telemetry::Routes> admin_;
  std::optional<telemetry::Routes> routes_;  ///< ends before the objects that it reads
};

/// Reads the files that the options name, and keeps nothing of them. Throws Error.
void check_files(const Options& options, core::Signals& signals);

}  // namespace offload::worker
