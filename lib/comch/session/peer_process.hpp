#pragma once

#include "core/fd.hpp"

namespace offload::comch {

/// A process on this machine, held by a pidfd: pidfd_open(2). Its number may be another process's
/// once it has ended, the pidfd is not.
class PeerProcess {
 public:
  explicit PeerProcess(int pid);

  [[nodiscard]] int pid() const noexcept { return pid_; }
  /// True as well where no pidfd can be had: for a process of another PID namespace.
  [[nodiscard]] bool has_ended() const noexcept;

 private:
  int pid_;
  core::Fd pidfd_;
};

}  // namespace offload::comch
