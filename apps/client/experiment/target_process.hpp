#pragma once

#include <sys/types.h>

#include <string>

#include "core/signals.hpp"

namespace offload::client {

/// A command of a target that runs while this object exists: in a separate process group, begun by
/// a shell. It also receives SIGTERM if this process dies. The main thread's.
class TargetProcess {
 public:
  /// Starts `command`, whose output goes to the file `log`. `channel`: a descriptor that becomes
  /// its standard input and output instead; only its errors go to `log` then. Throws Error.
  TargetProcess(const std::string& command, const std::string& log, int channel = -1);
  TargetProcess(TargetProcess&& other) noexcept;
  TargetProcess& operator=(TargetProcess&&) = delete;
  /// Ends the group by SIGTERM; after kEndLimit by SIGKILL.
  ~TargetProcess();

  static constexpr double kEndLimit = 10;  ///< seconds

  /// Returns whether the command is still running.
  [[nodiscard]] bool is_running();
  [[nodiscard]] const std::string& command() const noexcept { return command_; }
  [[nodiscard]] const std::string& log() const noexcept { return log_; }

 private:
  std::string command_;
  std::string log_;
  pid_t process_ = -1;  ///< and its group; -1: this object was moved from
  bool has_ended_ = false;
};

}  // namespace offload::client
