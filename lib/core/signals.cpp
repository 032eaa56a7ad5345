#include "core/signals.hpp"

#include <sys/signalfd.h>

#include <csignal>

#include "core/error.hpp"

namespace offload::core {
namespace {

sigset_t shutdown_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Signals::Signals(Hangup hangup) {
  sigset_t set = shutdown_set();
  if (hangup == Hangup::rereads) sigaddset(&set, SIGHUP);
  if (const int rc = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); rc != 0) {
    throw_errno("pthread_sigmask", rc);
  }
  fd_ = Fd(check_errno(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  // A write to a closed connection is to return EPIPE, not to raise a signal.
  std::signal(SIGPIPE, SIG_IGN);
}

int Signals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
  if (info.ssi_signo == SIGHUP) return SIGHUP;
  const sigset_t set = shutdown_set();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return static_cast<int>(info.ssi_signo);
}

}  // namespace offload::core
