#include "apps/client/load/run_control.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/readable.hpp"

namespace offload::client {
namespace {

using support::is_readable;

constexpr int kBoundMilliseconds = 20'000;

TEST(RunControl, ThreadsWaitForTheStart) {
  RunControl control;
  const auto begin = core::Clock::now();
  std::atomic<int> waiting{0};
  std::atomic<int> started{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++waiting;
      if (control.wait_for_start() == begin) ++started;
    });
  }
  EXPECT_TRUE(support::eventually([&] { return waiting == 4; }));
  EXPECT_EQ(started, 0);
  control.start(begin);
  threads.clear();
  EXPECT_EQ(started, 4);
  control.wait_for_start();  // returns at once after the start
}

TEST(RunControl, AStopIsSeenByAllThreadsAndStays) {
  RunControl control;
  EXPECT_FALSE(control.stopping());
  EXPECT_FALSE(is_readable(control.stop_fd(), 0));
  control.stop();
  control.stop();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(control.stopping());
    EXPECT_TRUE(is_readable(control.stop_fd(), 0));
  }
}

TEST(RunControl, CountsThreadsThatAreDoneSinceTheLastCall) {
  RunControl control;
  EXPECT_EQ(control.threads_done(), 0U);
  EXPECT_FALSE(is_readable(control.done_fd(), 0));
  control.thread_done();
  std::thread([&] { control.thread_done(); }).join();
  EXPECT_TRUE(is_readable(control.done_fd(), 0));
  EXPECT_EQ(control.threads_done(), 2U);
  EXPECT_FALSE(is_readable(control.done_fd(), 0));
  const std::jthread last([&] { control.thread_done(); });
  EXPECT_TRUE(is_readable(control.done_fd(), kBoundMilliseconds));
  EXPECT_EQ(control.threads_done(), 1U);
}

}  // namespace
}  // namespace offload::client
