#pragma once

#include <string>

#include "core/process/child.hpp"

namespace offload::client {

/// A command of a target that runs while this object exists: in a separate process group, begun by
/// a shell. It also receives SIGTERM if this process dies. The main thread's.
class TargetProcess {
 public:
  /// Starts `command`, whose output goes to the file `log`. `channel`: a descriptor that becomes
  /// its standard input and output instead; only its errors go to `log` then. Throws Error.
  TargetProcess(const std::string& command, const std::string& log, int channel = -1);
  TargetProcess(TargetProcess&& other) = default;
  /// Ends the group by SIGTERM; after kEndLimit by SIGKILL.
  ~TargetProcess() { group_.end(kEndLimit); }

  static constexpr core::Duration kEndLimit = std::chrono::seconds(10);

  /// Returns whether the command is still running.
  [[nodiscard]] bool is_running() { return !group_.has_ended(); }
  /// Waits until the command has ended, at most until `deadline`. Returns whether it has.
  bool wait_until(core::TimePoint deadline) { return group_.wait_until(deadline); }
  [[nodiscard]] const std::string& command() const noexcept { return command_; }
  [[nodiscard]] const std::string& log() const noexcept { return log_; }

 private:
  std::string command_;
  std::string log_;
  core::ProcessGroup group_;
};

}  // namespace offload::client
