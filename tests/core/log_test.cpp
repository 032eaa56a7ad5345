#include "core/log.hpp"

#include <gtest/gtest.h>
#include <spdlog/common.h>

#include <algorithm>
#include <string>

namespace offload::core {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{100s};

TEST(RateLimit, OneASecond) {
  RateLimit limit;
  EXPECT_TRUE(limit.allow(kStart));
  EXPECT_FALSE(limit.allow(kStart));
  EXPECT_FALSE(limit.allow(kStart + 999ms));
  EXPECT_TRUE(limit.allow(kStart + 1s));
  EXPECT_FALSE(limit.allow(kStart + 1999ms));
  EXPECT_TRUE(limit.allow(kStart + 2s));
}

TEST(RateLimit, CountsWhatItHeldBack) {
  RateLimit limit;
  EXPECT_TRUE(limit.allow(kStart));
  EXPECT_EQ(limit.suppressed(), 0U);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.allow(kStart + 500ms));
  EXPECT_TRUE(limit.allow(kStart + 1500ms));
  EXPECT_EQ(limit.suppressed(), 5U);
  EXPECT_TRUE(limit.allow(kStart + 3s));
  EXPECT_EQ(limit.suppressed(), 0U);
}

TEST(RateLimit, TheFirstIsLetThroughEvenRightAfterBoot) {
  RateLimit limit;
  EXPECT_TRUE(limit.allow(TimePoint{1ms}));
}

TEST(Log, EveryLevelIsOneThatTheLibraryKnows) {
  for (const std::string& level : log_levels()) {
    // What it does not know reads as "off".
    EXPECT_EQ(spdlog::level::from_str(level) == spdlog::level::off, level == "off") << level;
  }
}

std::string logged_at(const std::string& level) {
  testing::internal::CaptureStderr();
  start_log("the-program", level);
  log_debug("a detail");
  log_info("a word");
  log_warning("a warning");
  log_error("an error");
  flush_log();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, GoesToStandardErrorWithLevelAndProgram) {
  const auto text = logged_at("info");
  EXPECT_NE(text.find("info the-program: a word\n"), std::string::npos) << text;
  EXPECT_NE(text.find("warning the-program: a warning\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("a detail"), std::string::npos) << text;
}

TEST(Log, ItsLevelChangesWhileItRuns) {
  testing::internal::CaptureStderr();
  start_log("the-program", "error");
  log_info("before");
  set_log_level("debug");
  log_debug("after");
  set_log_level("error");
  log_info("at the end");
  flush_log();
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("debug the-program: after\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(Log, LastWordsComeBehindItsLines) {
  testing::internal::CaptureStderr();
  start_log("the-program", "info");
  log_info("a word");
  print_error("the-program", "it failed");
  flush_log();
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("a word\nthe-program: it failed\n"), std::string::npos) << text;
}

TEST(Log, SaysNoMoreThanItsLevel) {
  const auto text = logged_at("error");
  EXPECT_NE(text.find("an error"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(logged_at("off"), "");
}

}  // namespace
}  // namespace offload::core
