#include "core/log.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <string>

#include "tests/core/process/terminal.hpp"

namespace offload::core {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{100s};

TEST(RateLimit, OneASecond) {
  RateLimit limit;
  EXPECT_EQ(limit.suppressed(), 0U);
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

TEST(RateLimit, ThreeASecond) {
  RateLimit limit(3);
  for (int second = 0; second < 3; ++second) {
    const TimePoint begin = kStart + std::chrono::seconds(second);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(limit.allow(begin + i * 100ms)) << second;
      EXPECT_EQ(limit.suppressed(), second != 0 && i == 0 ? 2U : 0U) << second;
    }
    EXPECT_FALSE(limit.allow(begin + 300ms)) << second;
    EXPECT_FALSE(limit.allow(begin + 999ms)) << second;
  }
}

TEST(RateLimit, TheFirstIsLetThroughEvenRightAfterBoot) {
  RateLimit limit;
  EXPECT_TRUE(limit.allow(TimePoint{1ms}));
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

TEST(Log, AnInvalidLevelChangesNothing) {
  testing::internal::CaptureStderr();
  start_log("the-program", "info");
  set_log_level("loud");
  log_debug("a detail");
  log(LogLevel::warning, "{} words", 2);
  flush_log();
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("warning the-program: 2 words\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

/// Logs a line of each level to a terminal and returns what it gets; nothing if there is none.
std::optional<std::string> logged_to_a_terminal() {
  const test::Terminal terminal;
  termios raw{};
  if (::tcgetattr(terminal.screen.get(), &raw) != 0) return std::nullopt;
  ::cfmakeraw(&raw);
  ::tcsetattr(terminal.screen.get(), TCSANOW, &raw);
  std::optional<test::Replaced> replaced(std::in_place, STDERR_FILENO, terminal.screen.get());
  ::setenv("TERM", "xterm", 1);
  start_log("the-program", "debug");
  log_debug("a detail");
  log_info("a word");
  log_warning("a warning");
  log_error("an error");
  log_critical("the end");
  flush_log();
  replaced.reset();
  start_log("the-program", "info");
  std::string all;
  pollfd readable{terminal.user.get(), POLLIN, 0};
  while (!all.ends_with("the end\n") && ::poll(&readable, 1, 20'000) == 1) {
    std::array<char, 4096> text{};
    const auto length = ::read(terminal.user.get(), text.data(), text.size());
    if (length <= 0) break;
    all.append(text.data(), static_cast<std::size_t>(length));
  }
  return all;
}

TEST(Log, HasColoursOnATerminal) {
  const auto text = logged_to_a_terminal();
  if (!text) GTEST_SKIP() << "this system makes no terminal";
  for (const char* const part :
       {"\033[36mdebug\033[m the-program: a detail\n", "\033[32minfo\033[m the-program: a word\n",
        "\033[33m\033[1mwarning\033[m the-program: a warning\n",
        "\033[31m\033[1merror\033[m the-program: an error\n",
        "\033[31m\033[1mcritical\033[m the-program: the end\n"}) {
    EXPECT_NE(text->find(part), std::string::npos) << *text;
  }
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

TEST(Log, AComponentIsAFolderOfTheSources) {
  static_assert(component_of("/a/lib/comch/keys/key.cpp") == "lib/comch");
  static_assert(component_of("lib/net/socket.cpp") == "lib/net");
  static_assert(component_of("/usr/lib/suite/lib/core/log.cpp") == "lib/core");
  static_assert(component_of("/src/apps/server/view/page.cpp") == "server");
  static_assert(component_of("/src/tests/mylib/x.cpp") == "other");
  static_assert(component_of("x.cpp") == "other");
}

TEST(Log, InJsonALineIsAnObject) {
  testing::internal::CaptureStderr();
  start_log("the-program", "info", LogFormat::json);
  log_warning("a \"word\" of {}", "C:\\x\n");
  print_error("the-program", "last words");
  flush_log();
  std::istringstream lines(testing::internal::GetCapturedStderr());
  start_log("the-program", "info");
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.find("\\u0020"), std::string::npos) << "a blank needs no escape: " << line;
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["level"], "warning");
  EXPECT_EQ(object["program"], "the-program");
  EXPECT_EQ(object["component"], "other");
  EXPECT_EQ(object["message"], "a \"word\" of C:\\x\n");
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  EXPECT_TRUE(std::regex_match(object["time"].get<std::string>(), time)) << object["time"];
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["message"], "last words");
}

}  // namespace
}  // namespace offload::core
