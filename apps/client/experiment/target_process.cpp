#include "apps/client/experiment/target_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::client {
namespace {

constexpr int kCannotExecute = 127;

/// The child's part: calls nothing that is not safe after a fork of threads.
[[noreturn]] void become(const char* command, int log, int channel) noexcept {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::dup2(channel < 0 ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : channel, STDIN_FILENO);
  ::dup2(channel < 0 ? log : channel, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execl("/bin/sh", "sh", "-c", command, nullptr);
  ::_exit(kCannotExecute);
}

pid_t start(const std::string& command, const std::string& log, int channel) {
  constexpr mode_t kReadable = 0644;
  const core::Fd output(
      core::check_errno(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadable),
                        "cannot write '" + log + "'"));
  const pid_t process = core::check_errno(::fork(), "cannot start '" + command + "'");
  if (process == 0) become(command.c_str(), output.get(), channel);
  ::setpgid(process, process);  // whichever of the two comes first
  return process;
}

}  // namespace

TargetProcess::TargetProcess(const std::string& command, const std::string& log, int channel)
    : command_(command), log_(log), group_(start(command, log, channel)) {}

}  // namespace offload::client
