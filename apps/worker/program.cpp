#include "apps/worker/program.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "apps/worker/service_source.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "core/process/thread.hpp"

namespace offload::worker {
namespace {

/// The interval at which the main thread looks for workers that hang.
constexpr core::Duration kLookInterval = std::chrono::milliseconds(250);
/// The time for which it waits for workers that do not serve.
constexpr core::Duration kFarewell = std::chrono::milliseconds(100);
/// More than the descriptors of 1024 channels, of which control connections are among the first.
constexpr int kMostSockets = 8192;

/// Options that SIGHUP changes.
const std::vector<std::string> kMayChange{"log-level", "sdk-log-level", "connect-timeout",
                                          "shutdown-timeout"};

/// Ends the process without a word to threads and drivers. Connections are shut down before, so
/// that peers learn of it at once: what a driver does at a process's end may take long, and its
/// descriptors may be closed before theirs.
[[noreturn]] void end_process(ExitStatus status) {
  core::flush_log();
  for (int fd = STDERR_FILENO + 1; fd < kMostSockets; ++fd) ::shutdown(fd, SHUT_RDWR);
  ::_exit(static_cast<int>(status));
}

/// The prefix is left out if there is no memory for both.
void print_failure(const std::string& prefix, const std::exception& error) noexcept {
  try {
    core::print_error("offload-worker", prefix + core::what_of(error));
  } catch (const std::exception&) {
    core::print_error("offload-worker", core::what_of(error));
  }
}

}  // namespace

Program::Program(const Options& options, core::Signals& signals)
    : signals_(&signals),
      options_(options),
      files_(cli::digests_of(options.comch_security.key_files)) {
  reload_.add([this] {
    return cli::reread(options_, parse_options, kMayChange, [this](const Options& now) {
      options_.connect_timeout = now.connect_timeout;
      options_.shutdown_timeout = now.shutdown_timeout;
    });
  });
  reload_.add([this] {
    std::vector<comch::Address> servers;  // each with separate keys, which belong to one thread
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      servers.push_back(
          comch::make_address(options_.comch, options_.comch_security, options_.comch_path));
    }
    const cli::FileDigests files = cli::digests_of(options_.comch_security.key_files);
    // After the settings, which are applied by then.
    const auto apply = [this, servers, files] {
      files_ = files;
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        workers_[i].worker.set({servers[i], options_.connect_timeout, options_.shutdown_timeout});
      }
    };
    return cli::Reload::Change{apply, cli::changed_files(files_, files)};
  });
  auto gpus = options.gpu_pci_addresses;
  if (gpus.empty()) gpus.emplace_back();
  const backend::Services services = make_services(options, signals);
  for (const std::string& gpu : gpus) {
    workers_.emplace_back(options_, services, gpu, gpus.size() > 1 ? gpu : "",
                          options.max_memory / gpus.size());
    metrics_.add(gpu, workers_.back().worker.counts());
  }
  engine_.watch(signals_->fd(), EPOLLIN, *this);
  if (options_.metrics) routes_.emplace(*options_.metrics, "offload-worker", metrics_);
  if (!options_.admin.empty()) {
    admin_.emplace(options_.admin, "offload-worker", metrics_, commands_);
  }
}

Program::~Program() {
  engine_.unwatch(signals_->fd(), *this);
}

ExitStatus Program::run() {
  try {
    start_workers();
    look_after_workers();
  } catch (const std::exception& error) {
    // Workers may run, and this object is theirs until they have ended.
    core::print_error("offload-worker", core::what_of(error));
    failed_ = true;
    for (Running& running : workers_) {
      if (!running.thread.joinable()) running.ended.store(true, std::memory_order_relaxed);
    }
    begin_to_leave();
  }
  return finish();
}

void Program::start_workers() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].thread =
        core::start_thread("control-" + std::to_string(i), [this, i] { run_worker(workers_[i]); });
  }
}

void Program::look_after_workers() {
  manager_.ready("runs");
  auto next_look = core::Clock::now() + kLookInterval;
  while (!over()) {
    engine_.run_once(next_look);
    commands_.carry_out([this](const auto& command) { return run_command(command); });
    metrics_.note_turn(core::Clock::now(), leaving_);
    manager_.tick(core::Clock::now());  // in time: the turn is shorter than any watchdog's limit
    if (core::Clock::now() < next_look) continue;
    look_for_hangs();
    next_look = core::Clock::now() + kLookInterval;
  }
}

void Program::run_worker(Running& running) {
  try {
    if (running.worker.run() == WorkerEnd::hung) running.status = ExitStatus::hung;
  } catch (const std::exception& error) {
    running.status = ExitStatus::failed;
    print_failure(running.worker.prefix(), error);
  }
  running.ended.store(true, std::memory_order_release);  // pairs with over() and finish()
  engine_.notify();
}

void Program::look_for_hangs() {
  for (Running& running : workers_) {
    if (running.given_up || running.ended.load(std::memory_order_acquire)) continue;
    if (!running.worker.hang_detector().look(kLookInterval)) continue;
    core::log_critical("{}the back end hangs and is abandoned", running.worker.prefix());
    running.given_up = true;
  }
}

/// Returns whether there is no worker left to wait for.
bool Program::over() const {
  return std::ranges::all_of(workers_, [this](const Running& running) {
    return running.given_up || running.ended.load(std::memory_order_acquire) ||
           (leaving_ && !running.worker.serves());
  });
}

ExitStatus Program::finish() {
  commands_.close();
  // One that only connects hears of the end at once, but in a step of the handshake.
  const auto patience = core::Clock::now() + kFarewell;
  const auto returns = [](const Running& running) {
    return running.given_up || running.ended.load(std::memory_order_acquire);
  };
  while (!std::ranges::all_of(workers_, returns) && core::Clock::now() < patience) {
    engine_.run_once(patience);
  }
  auto status = failed_ ? ExitStatus::failed : ExitStatus::done;
  bool all_returned = true;
  for (const Running& running : workers_) {
    const bool ended = running.ended.load(std::memory_order_acquire);
    if (ended) status = std::max(status, running.status);
    if (running.given_up) status = ExitStatus::hung;
    all_returned = all_returned && ended;
  }
  if (status == ExitStatus::hung) {
    core::log_critical("exiting with status {}: a back end hangs", static_cast<int>(status));
  }
  // A worker that connects returns at the end of its own wait.
  if (!all_returned || status == ExitStatus::hung) {
    for (Running& running : workers_) {
      if (running.thread.joinable()) running.thread.detach();
    }
    end_process(status);
  }
  for (Running& running : workers_) {
    if (running.thread.joinable()) running.thread.join();
  }
  return status;
}

void Program::on_events(std::uint32_t) {
  const int signal = signals_->take();
  if (signal == 0) return;
  if (signal == SIGHUP) return (void)reload_.run();
  core::log_info("{}: detaching; a second signal ends the worker at once",
                 signal == SIGINT ? "SIGINT" : "SIGTERM");
  begin_to_leave();
}

void Program::begin_to_leave() {
  leaving_ = true;
  manager_.stopping("detaching");
  for (Running& running : workers_) running.worker.leave();
}

telemetry::CommandResult Program::run_command(const telemetry::AdminCommand& command) {
  using Status = telemetry::CommandResult::Status;
  if (command.name == "log-level") return telemetry::set_log_level(command.argument);
  if (command.name == "reload") {
    if (reload_.run()) return {Status::done, "settings and keys were reread"};
    return {Status::refused, "nothing was changed: the log has the reason"};
  }
  if (command.name == "detach") {
    begin_to_leave();
    return {Status::done, "the worker will detach and exit when it has answered its requests"};
  }
  return {Status::unknown, "unknown command; the worker has log-level, reload and detach"};
}

void check_files(const Options& options, core::Signals& signals) {
  (void)comch::make_address(options.comch, options.comch_security, options.comch_path);
  (void)make_services(options, signals);
}

}  // namespace offload::worker
