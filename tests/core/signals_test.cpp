#include "core/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace offload::core {
namespace {

// Each test runs in a process of its own: a signal's mask and action are the process's.

bool is_readable(int fd, int milliseconds) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, milliseconds) == 1;
}

bool killed_by_either(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
}

int pipe_without_reader() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::_Exit(2);
  ::close(ends[0]);
  return ends[1];
}

void exit_if(bool condition) {
  std::_Exit(condition ? 0 : 1);
}

TEST(ShutdownSignalsDeathTest, WithoutASignalThereIsNothing) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        exit_if(!is_readable(signals.fd(), 0) && signals.take() == 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ShutdownSignalsDeathTest, ASignalMakesItReadableAndIsTakenOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          ShutdownSignals signals;
          ::raise(signal);
          const bool readable = is_readable(signals.fd(), 5000);
          const int taken = signals.take();
          exit_if(readable && taken == signal && signals.take() == 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(ShutdownSignalsDeathTest, ASecondSignalEndsTheProcess) {
  for (const int first : {SIGINT, SIGTERM}) {
    for (const int second : {SIGINT, SIGTERM}) {
      EXPECT_EXIT(
          {
            ShutdownSignals signals;
            ::raise(first);
            signals.take();
            ::raise(second);
            std::_Exit(1);
          },
          testing::KilledBySignal(second), "");
    }
  }
}

TEST(ShutdownSignalsDeathTest, ASecondSignalThatCameBeforeTheFirstWasTakenEndsItToo) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        ::raise(SIGINT);
        ::raise(SIGTERM);
        signals.take();
        std::_Exit(1);
      },
      killed_by_either, "");
}

TEST(ShutdownSignalsDeathTest, AClosedPeerIsAnErrorNotASignal) {
  EXPECT_EXIT(
      {
        ShutdownSignals signals;
        exit_if(::write(pipe_without_reader(), "x", 1) == -1 && errno == EPIPE);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offload::core
