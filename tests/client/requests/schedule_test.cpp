#include "apps/client/requests/schedule.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

class ScheduleTest : public testing::Test {
 protected:
  Schedule read(const std::string& text) {
    directory_.write("schedule", text);
    return Schedule::read(path_);
  }
  std::string error(const std::string& text) {
    const std::string what = support::thrown_by([&] { read(text); }).what();
    EXPECT_EQ(what.rfind("'" + path_ + "', line ", 0), 0U) << what;
    return what.substr(std::min(what.size(), path_.size() + 9));
  }

  support::TempDir directory_;
  std::string path_ = directory_.file("schedule");
};

TEST_F(ScheduleTest, OffsetsAndSizes) {
  const auto schedule = read("# offset size\n0 64\n1500us,4k\n0.25\t64  # again\n0.25 0\n");
  ASSERT_EQ(schedule.requests.size(), 4U);
  EXPECT_EQ(schedule.requests[1].offset, 1500us);
  EXPECT_EQ(schedule.requests[2].offset, 250ms);
  ASSERT_EQ(schedule.sizes.size(), 3U);
  for (const SizeShare& size : schedule.sizes) EXPECT_EQ(size.weight, 1);
  EXPECT_EQ(schedule.sizes[schedule.requests[1].size_class].bytes, 4096U);
  EXPECT_EQ(schedule.requests[0].size_class, schedule.requests[2].size_class);
  EXPECT_EQ(schedule.sizes[schedule.requests[3].size_class].bytes, 0U);
}

TEST_F(ScheduleTest, WrongOnesNameTheirLine) {
  EXPECT_EQ(error("0 64\n1 64 7\n"),
            "2: '1 64 7' is not an offset such as 0.25 or 1500us and a size up to 16m");
  EXPECT_EQ(error("0 64\n64\n"), "2: each line needs an offset and a size");
  EXPECT_EQ(error("0.25,\n").substr(0, 3), "1: ");
  EXPECT_EQ(error("1 64\n0.5 64\n"), "2: its offset is before the offset of the previous line");
  EXPECT_EQ(error("0 16777217\n").substr(0, 3), "1: ");
  EXPECT_EQ(read("0 16777216\n").sizes.front().bytes, 16777216U);
  EXPECT_EQ(error("-1 64\n").substr(0, 3), "1: ");
  EXPECT_EQ(error("\n# nothing\n"), "2: it has no requests");
}

TEST_F(ScheduleTest, HasALimitOfDifferentSizes) {
  std::string most;
  for (std::uint32_t bytes = 0; bytes < kMostSizes; ++bytes) {
    most += "0 " + std::to_string(bytes) + '\n';
  }
  EXPECT_EQ(read(most + "0 0\n0 1\n").sizes.size(), kMostSizes);
  EXPECT_EQ(error(most + "0 16m\n"), std::to_string(kMostSizes + 1) + ": more than " +
                                         std::to_string(kMostSizes) + " different sizes");
}

TEST_F(ScheduleTest, AFileThatIsNotThere) {
  EXPECT_EQ(support::thrown_by([&] { Schedule::read(path_); }).code(), core::ErrorCode::not_found);
}

}  // namespace
}  // namespace offload::client
