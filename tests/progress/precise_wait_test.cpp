// Sleeps that are shorter than epoll_wait counts, and kernels that do not have them.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "core/error.hpp"
#include "progress/engine.hpp"
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
/// containers: seccomp(2).
bool deny_precise_waits(unsigned errnum) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errnum & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
