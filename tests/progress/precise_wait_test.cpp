// Sleeps that are shorter than epoll_wait counts, and kernels that do not have them.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>

#include "core/error.hpp"
#include "progress/engine.hpp"
#include "tests/core/process/rights.hpp"
#include "tests/progress/engine_fixture.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/eventually.hpp"

namespace offload::progress {
namespace {

using namespace std::chrono_literals;
using core::Clock;

// epoll_wait counts in milliseconds.
TEST(Engine, SleepsForLessThanAMillisecond) {
  Engine engine;
  EXPECT_TRUE(support::eventually([&] {
    const auto begin = Clock::now();
    EXPECT_FALSE(engine.run_once(in(100us)));
    return Clock::now() - begin < 1ms;
  }));
}

/// Has epoll_pwait2 fail with `errnum` in this process from now on, as before Linux 5.11 and in
/// containers.
bool deny_precise_waits(unsigned errnum) {
  return core::test::deny_syscall(SYS_epoll_pwait2, errnum);
}

/// Returns the step at which an engine whose kernel has no epoll_pwait2 does not do as others do; 0
/// if it does.
int sleep_without_precise_waits(unsigned errnum) {
  if (!deny_precise_waits(errnum)) return 1;
  Engine engine;
  Signal signal(engine);
  for (int i = 1; i <= 2; ++i) {
    const auto begin = Clock::now();
    if (engine.run_once(begin + 1500us)) return 2;
    if (Clock::now() - begin < 1500us) return 3;
    signal.raise();
    if (!engine.run_once(kNoDeadline)) return 4;
    if (signal.events != i) return 5;
  }
  return 0;
}

TEST(Engine, SleepsWhereTheKernelHasNoPreciseWait) {
  for (const unsigned errnum : {unsigned{ENOSYS}, unsigned{EPERM}}) {
    support::ChildProcess child([&](int) { return sleep_without_precise_waits(errnum); });
    const int status = child.wait();
    EXPECT_TRUE(WIFEXITED(status)) << errnum;
    EXPECT_EQ(WEXITSTATUS(status), 0) << errnum;
  }
  support::ChildProcess child([](int) {
    if (!deny_precise_waits(EIO)) return 1;
    try {
      Engine().run_once(in(1ms));
    } catch (const core::Error& error) {
      return error.system_errno() == EIO ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(child.wait(), 0) << "another error of the call is not one of these";
}

}  // namespace
}  // namespace offload::progress
