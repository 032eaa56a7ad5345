#include "apps/client/experiment/target_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::client {
namespace {

constexpr int kCannotExecute = 127;
constexpr auto kPoll = std::chrono::milliseconds(10);

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

}  // namespace

TargetProcess::TargetProcess(const std::string& command, const std::string& log, int channel)
    : command_(command), log_(log) {
  constexpr mode_t kReadable = 0644;
  const core::Fd output(
      core::check_errno(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadable),
                        "cannot write '" + log + "'"));
  process_ = core::check_errno(::fork(), "cannot start '" + command + "'");
  if (process_ == 0) become(command_.c_str(), output.get(), channel);
  ::setpgid(process_, process_);  // whichever of the two comes first
}

TargetProcess::TargetProcess(TargetProcess&& other) noexcept
    : command_(std::move(other.command_)),
      log_(std::move(other.log_)),
      process_(std::exchange(other.process_, -1)),
      has_ended_(other.has_ended_) {}

bool TargetProcess::is_running() {
  if (!has_ended_) has_ended_ = ::waitpid(process_, nullptr, WNOHANG) != 0;
  return !has_ended_;
}

TargetProcess::~TargetProcess() {
  if (process_ < 0) return;
  ::kill(-process_, SIGTERM);
  const auto limit = core::Clock::now() + core::seconds(kEndLimit);
  while (is_running() && core::Clock::now() < limit) std::this_thread::sleep_for(kPoll);
  ::kill(-process_, SIGKILL);  // and what the shell left behind
  if (!has_ended_) ::waitpid(process_, nullptr, 0);
}

}  // namespace offload::client
