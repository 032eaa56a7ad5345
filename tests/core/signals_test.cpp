#include "core/signals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/process/signals_blocked.hpp"
#include "tests/support/readable.hpp"

namespace offload::core {
namespace {

using support::is_readable;

// Each test runs in a separate process: a signal's mask and action belong to the process.

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

TEST(SignalsDeathTest, WithoutASignalThereIsNothing) {
  EXPECT_EXIT(
      {
        Signals signals;
        exit_if(!is_readable(signals.fd(), 0) && signals.take() == 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, ASignalMakesItReadableAndIsTakenOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          Signals signals;
          ::raise(signal);
          const bool readable = is_readable(signals.fd(), 5000);
          const int taken = signals.take();
          exit_if(readable && taken == signal && signals.take() == 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(SignalsDeathTest, ASecondSignalEndsTheProcess) {
  for (const int first : {SIGINT, SIGTERM}) {
    for (const int second : {SIGINT, SIGTERM}) {
      EXPECT_EXIT(
          {
            Signals signals;
            ::raise(first);
            signals.take();
            ::raise(second);
            std::_Exit(1);
          },
          testing::KilledBySignal(second), "");
    }
  }
}

// A shell starts a program in the background with SIGINT ignored.
TEST(SignalsDeathTest, ASecondSignalEndsAProcessThatBeganWithItIgnored) {
  for (const int ignored : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          std::signal(ignored, SIG_IGN);
          Signals signals;
          ::raise(ignored);
          if (signals.take() != ignored) std::_Exit(2);
          ::raise(ignored);
          std::_Exit(1);
        },
        testing::KilledBySignal(ignored), "");
  }
}

TEST(SignalsDeathTest, ASecondSignalThatCameBeforeTheFirstWasTakenEndsItToo) {
  EXPECT_EXIT(
      {
        Signals signals;
        ::raise(SIGINT);
        ::raise(SIGTERM);
        signals.take();
        std::_Exit(1);
      },
      killed_by_either, "");
}

TEST(SignalsDeathTest, AHangupEndsTheProcessUnlessItIsWanted) {
  EXPECT_EXIT(
      {
        Signals signals;
        ::raise(SIGHUP);
        std::_Exit(1);
      },
      testing::KilledBySignal(SIGHUP), "");
}

TEST(SignalsDeathTest, AWantedHangupIsTakenAsOftenAsItComes) {
  EXPECT_EXIT(
      {
        Signals signals(Hangup::rereads);
        bool taken = true;
        for (int i = 0; i < 5; ++i) {
          ::raise(SIGHUP);
          taken = taken && is_readable(signals.fd(), 5000) && signals.take() == SIGHUP;
          taken = taken && signals.take() == 0;
        }
        exit_if(taken);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, AHangupDoesNotEndAProgramThatShutsDown) {
  EXPECT_EXIT(
      {
        Signals signals(Hangup::rereads);
        ::raise(SIGTERM);
        bool taken = signals.take() == SIGTERM;
        for (int i = 0; i < 5; ++i) {
          ::raise(SIGHUP);
          taken = taken && signals.take() == SIGHUP;
        }
        exit_if(taken);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, HangupsDoNotCountAsTheFirstOfTwoSignals) {
  EXPECT_EXIT(
      {
        Signals signals(Hangup::rereads);
        ::raise(SIGHUP);
        bool taken = signals.take() == SIGHUP;
        ::raise(SIGTERM);
        taken = taken && signals.take() == SIGTERM;
        if (!taken) std::_Exit(1);
        ::raise(SIGINT);
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(SignalsDeathTest, AClosedPeerIsAnErrorNotASignal) {
  EXPECT_EXIT(
      {
        Signals signals;
        exit_if(::write(pipe_without_reader(), "x", 1) == -1 && errno == EPIPE);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsBlocked, AreBlockedWhileItLives) {
  const auto is_blocked = [](int signal) {
    sigset_t now;
    EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    return sigismember(&now, signal) == 1;
  };
  const int signals[] = {SIGTERM, SIGHUP, SIGUSR1};
  for (const int signal : signals) EXPECT_FALSE(is_blocked(signal)) << signal;
  {
    const SignalsBlocked blocked;
    for (const int signal : signals) EXPECT_TRUE(is_blocked(signal)) << signal;
  }
  for (const int signal : signals) EXPECT_FALSE(is_blocked(signal)) << signal;
}

}  // namespace
}  // namespace offload::core
