#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/support/eventually.hpp"

namespace offload::support {

/// A copy of this process that runs `action(socket)` and exits with its result; the socket is
/// connected to this process's. It is killed if it takes longer than `limit`, and at the end of the
/// thread that made it.
class ChildProcess {
 public:
  template <class Action>
  explicit ChildProcess(Action action, std::chrono::seconds limit = kBound) {
    int ends[2];
    core::check_errno(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
    socket_.reset(ends[0]);
    const core::Fd other(ends[1]);
    pid_ = core::check_errno(::fork(), "fork");
    if (pid_ == 0) {
      socket_.reset();
      // A sanitizer's handler would make an exit status of a signal.
      std::signal(SIGSEGV, SIG_DFL);
      const struct rlimit no_core {};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(static_cast<unsigned>(limit.count()));
      ::_exit(action(other.get()));
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGCONT);  // if the test has stopped it
    wait();
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

  /// Returns its status, as of waitpid.
  int wait() {
    int status = -1;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }

 private:
  core::Fd socket_;
  pid_t pid_ = 0;
};

}  // namespace offload::support
