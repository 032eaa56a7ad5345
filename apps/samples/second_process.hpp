#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/process/out_of_memory.hpp"
#include "core/process/thread.hpp"

namespace offload::samples {

/// A second process, connected to this one by a Unix socket that can pass descriptors. The samples
/// use it as they would use an unrelated process.
class SecondProcess {
 public:
  /// Forks a process that calls `run(socket)`. Throws Error.
  template <class Run>
  SecondProcess(const char* name, Run run) {
    int ends[2];
    core::check_errno(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
    socket_ = core::Fd(ends[0]);
    const core::Fd there(ends[1]);
    std::fflush(stdout);  // once, and not by each process
    process_ = ::fork();
    if (process_ < 0) core::throw_thread_error("cannot start a second process", errno);
    if (process_ != 0) return;
    ::alarm(kLimitSeconds);
    try {
      run(there.get());
      if (std::fflush(stdout) != 0) core::throw_errno("cannot write standard output");
      std::_Exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name, core::what_of(error));
      std::_Exit(1);
    }
  }

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

  /// Waits until it ends. Throws Error if it failed.
  void wait() const {
    int status = 1;
    core::check_errno(::waitpid(process_, &status, 0), "waitpid");
    if (status != 0) {
      throw core::Error(core::ErrorCode::unexpected, "the second process failed");
    }
  }

 private:
  /// The time after which it is killed, which bounds wait().
  static constexpr unsigned kLimitSeconds = 30;

  core::Fd socket_;
  pid_t process_ = -1;
};

}  // namespace offload::samples
