#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/fd.hpp"

namespace offload::comch {

/// A process on this machine, held by a pidfd: pidfd_open(2). Its number may be another process's
/// once it has ended, the pidfd is not.
class PeerProcess {
 public:
  // glibc has pidfd_open() from 2.36 on. SO_PEERCRED tells a process of another PID namespace as 0.
  explicit PeerProcess(int pid)
      : pid_(pid), pidfd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}

  [[nodiscard]] int pid() const noexcept { return pid_; }
  /// True as well where no pidfd can be had: for a process of another PID namespace.
  [[nodiscard]] bool has_ended() const noexcept {
    pollfd poll{pidfd_.get(), POLLIN, 0};
    return !pidfd_.valid() || ::poll(&poll, 1, 0) > 0;
  }

 private:
  int pid_;
  core::Fd pidfd_;
};

}  // namespace offload::comch
