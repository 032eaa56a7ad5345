#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/clock.hpp"

namespace offload::telemetry {

/// A command to a running program.
struct AdminCommand {
  std::string name;
  std::string argument;  ///< empty: none
};

struct CommandResult {
  enum class Status { done, refused, unknown } status;
  std::string text;  ///< one line, for the person who gave the command
};

/// The command "log-level" of every program: core::set_log_level().
CommandResult set_log_level(const std::string& levels);

/// Hands commands to a program's control thread and results back.
class CommandQueue {
 public:
  /// `notify`: wakes the control thread, from any thread. `patience`: how long the caller of ask()
  /// waits for it.
  explicit CommandQueue(std::function<void()> notify, core::Duration patience = core::seconds(5))
      : notify_(std::move(notify)), patience_(patience) {}

  /// Any thread but the control thread. Nothing is done where that does not answer in time.
  CommandResult ask(AdminCommand command);

  /// The control thread, before it ends: refuses what waits, and all that comes.
  void close();

  /// The control thread: carries out what waits by `run`, which throws nothing.
  void carry_out(const std::function<CommandResult(const AdminCommand&)>& run);

 private:
  struct Waiting {
    AdminCommand command;
    CommandResult result{};
    bool is_done = false;
  };

  std::function<void()> notify_;
  core::Duration patience_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Waiting>> waiting_;  ///< under the mutex, as all of it
  bool closed_ = false;
};

}  // namespace offload::telemetry
