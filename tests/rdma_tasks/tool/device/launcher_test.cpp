#include "apps/rdma_tasks/device/launcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::rdma_tool {
namespace {

TEST(LaneLauncher, TheLogSaysWhichRunsTheLanesAndWhy) {
  const support::LogCapture log;
  std::string why;
  try {
    static_cast<void>(make_gpu_launcher(""));
  } catch (const core::Error& error) {
    why = error.what();
  }
  const auto launcher = make_launcher();
  EXPECT_NE(log.text().find("operations are issued by " + launcher->name()), std::string::npos);
  EXPECT_EQ(launcher->name() == "device functions on CPU threads", !why.empty());
  EXPECT_NE(log.text().find(why), std::string::npos);
}

TEST(LaneLauncher, MemoryIsZeroedAndAligned) {
  const auto launcher = make_cpu_launcher();
  const memory::Range range = launcher->allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range.address) % 64, 0U);
  EXPECT_TRUE(std::all_of(range.address, range.address + 1000,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  const LaneArray<LaneRun> runs(*launcher, 3);
  EXPECT_EQ(runs.all().size(), 3U);
  EXPECT_EQ(runs.get()[2].queues, nullptr);
}

}  // namespace
}  // namespace offload::rdma_tool
