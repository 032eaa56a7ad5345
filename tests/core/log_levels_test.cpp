#include "core/log_levels.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace offload::core {
namespace {

constexpr int kDebug = static_cast<int>(LogLevel::debug);
constexpr int kInfo = static_cast<int>(LogLevel::info);
constexpr int kWarning = static_cast<int>(LogLevel::warning);
constexpr int kError = static_cast<int>(LogLevel::error);
constexpr int kCritical = static_cast<int>(LogLevel::critical);

TEST(LogLevels, HaveNames) {
  EXPECT_EQ(log_levels(), (std::vector<std::string>{"trace", "debug", "info", "warning", "error",
                                                    "critical", "off"}));
  EXPECT_TRUE(log_levels_are_right("az_za=info"));
}

TEST(LogLevels, OneForAll) {
  for (const std::string& name : log_levels()) EXPECT_TRUE(log_levels_are_right(name)) << name;
  EXPECT_EQ(LogLevels::parse("warning")->of("server"), kWarning);
  EXPECT_EQ(LogLevels::parse("trace")->of("lib/net"), 0);
  EXPECT_GT(LogLevels::parse("off")->of("lib/net"), kCritical);
}

TEST(LogLevels, TheReferencesNumbers) {
  EXPECT_EQ(LogLevels::parse("20")->of("server"), kCritical);
  EXPECT_EQ(LogLevels::parse("30")->of("server"), kError);
  EXPECT_EQ(LogLevels::parse("40")->of("server"), kWarning);
  EXPECT_EQ(LogLevels::parse("50")->of("server"), kInfo);
  EXPECT_EQ(LogLevels::parse("60")->of("server"), kDebug);
}

TEST(LogLevels, ComponentsHaveTheirOwn) {
  const auto levels = LogLevels::parse("warning,comch=debug,server=info,lib=error,net=info,net=60");
  ASSERT_TRUE(levels);
  EXPECT_EQ(levels->of("lib/comch"), kDebug);
  EXPECT_EQ(levels->of("lib/net"), kDebug);   // the last one counts
  EXPECT_EQ(levels->of("lib/core"), kError);  // all of lib/ that has no own
  EXPECT_EQ(levels->of("server"), kInfo);
  EXPECT_EQ(levels->of("worker"), kWarning);
  EXPECT_EQ(levels->lowest(), kDebug);
}

TEST(LogLevels, AComponentAloneLeavesTheOthers) {
  EXPECT_EQ(LogLevels::parse("comch=error")->of("server"), kInfo);
  EXPECT_EQ(LogLevels::parse("comch=error")->lowest(), kInfo);
}

TEST(LogLevels, WhatIsNone) {
  for (const char* text : {"", "loud", "info,", ",info", "info,debug", "15", "comch=", "=info",
                           "comch=loud", "Comch=info", "a b=info", "info;debug", "lib/net=info"}) {
    EXPECT_FALSE(log_levels_are_right(text)) << text;
  }
}

}  // namespace
}  // namespace offload::core
