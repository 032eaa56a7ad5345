#include "core/cpu.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

extern "C" void numa_error(char* where);
extern "C" void numa_warn(int number, char* format, ...);

namespace offload::core {
namespace {

/// Runs `action` in a separate thread: pinning and names that it sets end with it.
void in_a_thread(const std::function<void()>& action) {
  std::thread(action).join();
}

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

TEST(Cpu, AllowedCpusAreSortedAndThere) {
  const auto cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
  // The test does not check where it runs now: a thread may move in between.
  EXPECT_LE(cpus.size(), std::thread::hardware_concurrency());
}

TEST(Cpu, AllowedCpusAreAllOfTheThreadsMask) {
  const std::vector<int> all = allowed_cpus();
  for (const int cpu : all) {
    in_a_thread([&] {
      cpu_set_t both;
      CPU_ZERO(&both);
      std::vector<int> expected{std::min(all.front(), cpu)};
      if (cpu != all.front()) expected.push_back(cpu);
      for (const int each : expected) CPU_SET(static_cast<std::size_t>(each), &both);
      ASSERT_EQ(::pthread_setaffinity_np(::pthread_self(), sizeof both, &both), 0);
      EXPECT_EQ(allowed_cpus(), expected);
    });
  }
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(static_cast<int>(all.size()), CPU_COUNT(&set));
}

TEST(Cpu, APinnedThreadRunsThereAndNowhereElse) {
  for (const int cpu : allowed_cpus()) {
    in_a_thread([cpu] {
      pin_this_thread(cpu);
      EXPECT_EQ(::sched_getcpu(), cpu);
      EXPECT_EQ(allowed_cpus(), std::vector{cpu});
    });
  }
}

TEST(Cpu, PinningOneThreadLeavesOthersAlone) {
  const auto before = allowed_cpus();
  in_a_thread([&] { pin_this_thread(before.front()); });
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Cpu, NoSuchCpu) {
  in_a_thread([] {
    for (const int cpu : {-1, CPU_SETSIZE, CPU_SETSIZE - 1}) {
      const auto error = support::thrown_by([cpu] { pin_this_thread(cpu); });
      EXPECT_EQ(error.code(), ErrorCode::invalid_value);
      const std::string text = "cannot pin to CPU " + std::to_string(cpu);
      // The kernel refuses a number that it could have, but has not.
      EXPECT_EQ(error.what(), cpu == CPU_SETSIZE - 1 ? text + ": Invalid argument" : text);
    }
  });
}

TEST(Cpu, EveryCpuHasANodeOrTheMachineHasNone) {
  // As libnuma decides it; a container may deny the call.
  const bool none = ::syscall(SYS_get_mempolicy, nullptr, nullptr, 0, nullptr, 0) != 0 &&
                    (errno == ENOSYS || errno == EPERM);
  for (const int cpu : allowed_cpus()) EXPECT_EQ(numa_node_of(cpu) == -1, none) << cpu;
}

TEST(Cpu, APinnedThreadPrefersMemoryOfItsNode) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED of numaif.h
  const auto policy = [] {
    int now = -1;
    EXPECT_EQ(::syscall(SYS_get_mempolicy, &now, nullptr, 0, nullptr, 0), 0);
    return now;
  };
  const int cpu = allowed_cpus().front();
  if (numa_node_of(cpu) == -1) GTEST_SKIP() << "this kernel does not tell nodes";
  in_a_thread([&] {
    EXPECT_NE(policy(), kPreferred);
    pin_this_thread(cpu);
    EXPECT_EQ(policy(), kPreferred);
  });
}

TEST(Cpu, MessagesOfLibnumaGoToTheLog) {
  const support::LogCapture log;
  std::string where = "mbind";
  errno = ENOMEM;
  numa_error(where.data());
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(log.text(),
            "warning: memory is not bound to a NUMA node: mbind: Cannot allocate memory\n");
  std::string format = "node %d is %s";
  numa_warn(1, format.data(), 3, "gone");
  EXPECT_TRUE(log.has("warning: libnuma: node 3 is gone\n")) << log.text();
}

TEST(Cpu, ThreadNamesAreCutAtFifteenCharacters) {
  in_a_thread([] {
    name_this_thread("io-3");
    EXPECT_EQ(name_of_this_thread(), "io-3");
    name_this_thread("0123456789abcdefgh");
    EXPECT_EQ(name_of_this_thread(), "0123456789abcde");
  });
}

}  // namespace
}  // namespace offload::core
