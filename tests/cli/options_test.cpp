#include "cli/options.hpp"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/log_options.hpp"
#include "tests/core/process/terminal.hpp"
#include "tests/support/command_line.hpp"

namespace offload::cli {
namespace {

using namespace std::chrono_literals;

/// A program with an option of every kind.
struct Program {
  std::uint32_t count = 7;
  std::uint16_t port = 12345;
  core::Duration timeout = 10s;
  core::Duration patience = 1s;
  std::optional<core::Duration> duration{};
  std::uint32_t length = 256;
  std::string kind = "red";
  std::vector<std::string> friends{};
  LogOptions log{};

  std::optional<Leave> parse(std::vector<const char*> arguments) {
    CommandLine line("the-program", "What it is.");
    add_integer<std::uint32_t>(line, "-n,--count", count, 1, 4096, "How many");
    add_integer<std::uint16_t>(line, "-p,--port PORT", port, 0, 65535, "Where");
    add_time(line, "--timeout", timeout, core::Duration{}, "How long");
    add_time(line, "--patience", patience, 1ms, "How long at least a bit");
    add_time(line, "--duration", duration, 1ms, "How long, if at all");
    add_size(line, "--length", length, 16, 65536, "How large");
    add_choice(line, "--kind", kind, {"red", "green"}, "Which");
    const auto take_friend = [this](const std::string& text) {
      if (text != "nobody") friends.push_back(text);
      return text != "nobody";
    };
    add_values(line, "--friend", take_friend, "a name", "Who is a friend");
    add_log_options(line, log);
    arguments.insert(arguments.begin(), "the-program");
    return line.parse(static_cast<int>(arguments.size()), arguments.data());
  }
};

Leave refused(const std::vector<const char*>& arguments) {
  Program program;
  const auto leave = program.parse(arguments);
  EXPECT_TRUE(leave.has_value());
  return leave.value_or(Leave{0, "accepted"});
}

TEST(Options, WithoutArgumentsDefaultsStay) {
  Program program;
  EXPECT_FALSE(program.parse({}));
  EXPECT_EQ(program.count, 7U);
  EXPECT_EQ(program.port, 12345);
  EXPECT_EQ(program.timeout, 10s);
  EXPECT_FALSE(program.duration);
  EXPECT_EQ(program.length, 256U);
  EXPECT_EQ(program.kind, "red");
  EXPECT_EQ(program.log.level, "info");
}

TEST(Options, ValuesOfEveryKind) {
  Program program;
  EXPECT_FALSE(program.parse({"-n", "12", "--port=80", "--timeout", "500ms", "--duration", "2m",
                              "--length", "4k", "--kind", "green", "--log-level", "debug"}));
  EXPECT_EQ(program.count, 12U);
  EXPECT_EQ(program.port, 80);
  EXPECT_EQ(program.timeout, 500ms);
  EXPECT_EQ(program.duration, 2min);
  EXPECT_EQ(program.length, 4096U);
  EXPECT_EQ(program.kind, "green");
  EXPECT_EQ(program.log.level, "debug");
}

TEST(Options, BothEndsOfARangeBelongToIt) {
  Program program;
  EXPECT_FALSE(program.parse(
      {"-n", "1", "-p", "0", "--length", "16", "--timeout", "0", "--patience", "1ms"}));
  EXPECT_EQ(program.count, 1U);
  EXPECT_EQ(program.port, 0);
  EXPECT_EQ(program.length, 16U);
  EXPECT_EQ(program.timeout, 0s);
  EXPECT_EQ(program.patience, 1ms);
  EXPECT_FALSE(
      program.parse({"-n", "4096", "-p", "65535", "--length", "64k", "--timeout", "1000h"}));
  EXPECT_EQ(program.count, 4096U);
  EXPECT_EQ(program.port, 65535);
  EXPECT_EQ(program.length, 65536U);
  EXPECT_EQ(program.timeout, 1000h);
}

TEST(Options, OneThatMayBeSaidSeveralTimes) {
  Program program;
  EXPECT_FALSE(program.parse({"--friend", "Ada", "--friend=Grace"}));
  EXPECT_EQ(program.friends, (std::vector<std::string>{"Ada", "Grace"}));
  EXPECT_EQ(refused({"--friend", "Ada", "--friend=nobody"})
                .text.rfind("the-program: --friend: 'nobody' is not a name", 0),
            0U);
}

TEST(Options, OneLineSaysWhatIsWrongAndWhatIsAllowed) {
  const char* const count = "--count: '";
  const support::BadCase cases[] = {
      {{"-n", "0"}, "--count: '0' is not a whole number from 1 to 4096"},
      {{"-n", "4097"}, "'4097' is not a whole number from 1 to 4096"},
      {{"-n", "-1"}, count},
      {{"-n", "+1"}, count},
      {{"-n", " 1"}, count},
      {{"-n", "1x"}, count},
      {{"-n", "1.0"}, count},
      {{"-n", "0x10"}, count},
      {{"-n", ""}, "--count: '' is not"},
      {{"-n", "4294967297"}, count},
      {{"-n", "99999999999999999999"}, count},
      {{"-n", "{}"}, "--count: '{}' is not"},
      {{"-n", "%s%n"}, "'%s%n' is not"},
      {{"-p", "65536"}, "--port: '65536' is not a whole number from 0 to 65535"},
      {{"-p", "http"}, "'http' is not"},
      {{"--timeout", "-1"}, "--timeout: '-1' is not a time from 0 to 1000h, such as 2s or 500ms"},
      {{"--timeout", "1001h"}, "--timeout: '1001h'"},
      {{"--timeout", "soon"}, "--timeout: 'soon'"},
      {{"--patience", "999us"}, "--patience: '999us' is not a time from 1ms to 1000h"},
      {{"--patience", "0"}, "--patience: '0'"},
      {{"--length", "15"}, "--length: '15' is not a size from 16 to 65536 bytes, such as 4096 or"},
      {{"--length", "65537"}, "--length: '65537'"},
      {{"--length", "4g"}, "--length: '4g'"},
      {{"--length", "4294967312"}, "--length: '4294967312'"},
      {{"--length", "12q"}, "--length: '12q'"},
      {{"--kind", "blue"}, "--kind: 'blue' is not one of red, green"},
      {{"--kind", "Red"}, "--kind: 'Red'"},
      {{"--kind", ""}, "--kind: '' is not one of"},
      {{"--log-level", "loud"},
       "--log-level: 'loud' is not one of trace, debug, info, warning, error, critical"},
      {{"-n"}, "--count"},
      {{"-n", "1", "-n", "2"}, "--count"},
      {{"--unknown"}, "--unknown"},
      {{"stray"}, "stray"},
  };
  for (const auto& bad : cases) {
    support::expect_refused(refused(bad.arguments), "the-program", bad.says);
  }
}

// Text that a user typed must not move the cursor of a terminal or forge a line of a log.
TEST(Options, ControlCharactersAreNotRepeated) {
  EXPECT_NE(refused({"--kind", "a\x1b[31m\nb\x7f"}).text.find("'a?[31m?b?' is not"),
            std::string::npos);
  for (const auto& arguments :
       {std::vector<const char*>{"-n", "\r\n\t\x01\x1b\x7f"}, {"\x1b]0;title\x07"}, {"--a\nb"}}) {
    const auto text = refused(arguments).text;
    for (const char c : text) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << text;
    }
  }
}

TEST(Options, TextBeyondAsciiIsRepeatedAsItIs) {
  EXPECT_NE(refused({"--kind", "größe"}).text.find("'größe' is not"), std::string::npos);
}

TEST(Options, ARefusedValueLeavesTheDefault) {
  Program program;
  EXPECT_TRUE(program.parse({"-n", "0"}));
  EXPECT_EQ(program.count, 7U);
}

TEST(Options, HelpNamesEveryOptionWithItsDefaultAndUnit) {
  for (const char* flag : {"-h", "--help"}) {
    const auto leave = refused({flag});
    EXPECT_EQ(leave.status, 0);
    for (const char* part :
         {"What it is.", "-n,--count", "COUNT", "7", "PORT", "12345", "--timeout", "SECONDS",
          "--length", "BYTES", "Which: red, green", "--log-level", "--version"}) {
      EXPECT_NE(leave.text.find(part), std::string::npos) << part << " in\n" << leave.text;
    }
    EXPECT_NE(leave.text.back(), '\n');
  }
}

TEST(Options, HelpIsWrappedAtTheWidthOfColumns) {
  const auto lines_of = [](const char* columns) {
    ::setenv("COLUMNS", columns, 1);
    std::istringstream help(refused({"--help"}).text);
    ::unsetenv("COLUMNS");
    std::vector<std::string> lines;
    for (std::string line; std::getline(help, line);) lines.push_back(line);
    return lines;
  };
  ::unsetenv("COLUMNS");
  const std::string whole = refused({"--help"}).text;
  std::size_t longest = 0;
  std::string words;
  for (const std::string& line : lines_of("40")) {
    longest = std::max(longest, line.size());
    std::istringstream text(line);
    for (std::string word; text >> word;) words += word + ' ';
  }
  EXPECT_LE(longest, 80U);
  EXPECT_GT(longest, 40U) << "80 at least";
  std::string expected;
  std::istringstream text(whole);
  for (std::string word; text >> word;) expected += word + ' ';
  EXPECT_EQ(words, expected) << "no word is lost";
  for (const std::string& line : lines_of("1000")) EXPECT_LE(line.size(), 120U);
  for (const char* wrong : {"", "wide", "0", "-5"}) {
    EXPECT_EQ(lines_of(wrong).size(),
              static_cast<std::size_t>(std::ranges::count(whole, '\n')) + 1);
  }
}

TEST(Options, AParagraphIsWrappedAsAWhole) {
  CommandLine line("test",
                   "Sends requests to a server and counts the responses that it gets, one by one,\n"
                   "--port says where, and then it\nEnds.");
  const std::array<const char*, 2> arguments{"test", "--help"};
  ::setenv("COLUMNS", "80", 1);
  const auto narrow = line.parse(2, arguments.data());
  ::unsetenv("COLUMNS");
  ASSERT_TRUE(narrow);
  EXPECT_TRUE(narrow->text.starts_with(
      "Sends requests to a server and counts the responses that it gets, one by one,\n"))
      << "a line that fits stays: " << narrow->text;
  CommandLine long_line("test",
                        "Sends requests to a server and counts the responses that it gets, one by "
                        "one, in order,\n--port says where, and then it\nEnds.",
                        "\nExample:\n  test --with-a-long-name a-long-value --with-another-name "
                        "another-value --and more");
  ::setenv("COLUMNS", "80", 1);
  const auto carried = long_line.parse(2, arguments.data());
  ::unsetenv("COLUMNS");
  ASSERT_TRUE(carried);
  EXPECT_TRUE(carried->text.starts_with(
      "Sends requests to a server and counts the responses that it gets, one by one, in\n"
      "order, --port says where, and then it\nEnds.\n"))
      << carried->text;
  for (const char* next : {"a line", "z"}) {
    CommandLine joined("test",
                       "Sends requests to a server and counts the responses that it gets, one by "
                       "one, in order,\n" +
                           std::string(next) + " follows\nEnds.");
    ::setenv("COLUMNS", "80", 1);
    const auto leave = joined.parse(2, arguments.data());
    ::unsetenv("COLUMNS");
    ASSERT_TRUE(leave);
    EXPECT_NE(leave->text.find("\norder, " + std::string(next) + " follows\nEnds.\n"),
              std::string::npos)
        << leave->text;
  }
  // An example goes on in its own column, not in that of descriptions.
  EXPECT_NE(carried->text.find("  test --with-a-long-name a-long-value --with-another-name "
                               "another-value --and\n  more"),
            std::string::npos)
      << carried->text;
}

TEST(Options, DescriptionsGoOnInTheirColumn) {
  CommandLine line("test", "What it does.");
  bool value = false;
  const std::string text =
      "It is described with many words, of which no line can have all, so that it goes on";
  add_flag(line, "--short", value, text);
  add_flag(line, "--with-a-name-as-long-as-none", value, text);
  ::setenv("COLUMNS", "80", 1);
  const std::array<const char*, 2> arguments{"test", "--help"};
  const auto leave = line.parse(2, arguments.data());
  ::unsetenv("COLUMNS");
  ASSERT_TRUE(leave);
  const std::string column(30, ' ');
  const std::string described = "It is described with many words, of which no line\n" + column +
                                "can have all, so that it goes on\n";
  EXPECT_NE(leave->text.find("  --short" + column.substr(9) + described), std::string::npos)
      << leave->text;
  EXPECT_NE(leave->text.find("  --with-a-name-as-long-as-none\n" + column + described),
            std::string::npos)
      << leave->text;
}

TEST(Options, HelpIsAsWideAsTheTerminal) {
  const core::test::Terminal terminal;
  const auto longest_at = [&](std::uint16_t columns) {
    const winsize window{24, columns, 0, 0};
    EXPECT_EQ(::ioctl(terminal.screen.get(), TIOCSWINSZ, &window), 0);
    const core::test::Replaced output(STDOUT_FILENO, terminal.screen.get());
    std::istringstream help(refused({"--help"}).text);
    std::size_t longest = 0;
    for (std::string line; std::getline(help, line);) longest = std::max(longest, line.size());
    return longest;
  };
  ::unsetenv("COLUMNS");
  const std::size_t whole = longest_at(0);
  EXPECT_GT(whole, 120U) << "the width is not known";
  EXPECT_GT(longest_at(100), 80U);
  EXPECT_LE(longest_at(100), 100U);
  ::setenv("COLUMNS", "120", 1);
  EXPECT_GT(longest_at(90), 90U) << "COLUMNS takes precedence";
  ::unsetenv("COLUMNS");
}

TEST(Options, OptionsAreInTheirGroup) {
  CommandLine line("test", "What it does.");
  bool value = false;
  line.begin_group("Colours");
  add_flag(line, "--red", value, "It is red");
  const std::array<const char*, 2> arguments{"test", "--help"};
  const auto leave = line.parse(2, arguments.data());
  ASSERT_TRUE(leave);
  EXPECT_NE(leave->text.find("  -h,--help                   Print this help and exit\n"),
            std::string::npos)
      << leave->text;
  const std::size_t colours = leave->text.find("\nColours:\n  --red ");
  const std::size_t options = leave->text.find("\nOptions:\n");
  ASSERT_NE(colours, std::string::npos) << leave->text;
  ASSERT_NE(options, std::string::npos) << leave->text;
  const std::size_t version = leave->text.find("  --version ");
  EXPECT_EQ(version > colours, options > colours) << "it is in the group of the usual ones";
}

TEST(Options, FlagsAndChecks) {
  struct Read {
    bool loud = false;
    bool quiet_is_off = true;
    std::string even = "2";
    bool has_even = false;
    std::optional<Leave> leave{};
  };
  const auto read = [](std::vector<const char*> arguments) {
    Read result;
    CommandLine line("test", "What it does.");
    add_flag(line, "--loud", result.loud, "Be loud");
    add_clearing_flag(line, "--quiet", result.quiet_is_off, "Be quiet");
    const auto check = [](const std::string& text) {
      return text == "4" ? std::string() : "'" + text + "' is not 4";
    };
    add_text(line, "--even", result.even, "A number").check(check);
    arguments.insert(arguments.begin(), "test");
    result.leave = line.parse(static_cast<int>(arguments.size()), arguments.data());
    result.has_even = line.has("--even");
    return result;
  };
  const Read nothing = read({});
  EXPECT_FALSE(nothing.loud);
  EXPECT_TRUE(nothing.quiet_is_off);
  EXPECT_FALSE(nothing.has_even);
  EXPECT_FALSE(nothing.leave);
  const Read all = read({"--loud", "--quiet", "--even", "4"});
  EXPECT_TRUE(all.loud);
  EXPECT_FALSE(all.quiet_is_off);
  EXPECT_TRUE(all.has_even);
  EXPECT_FALSE(all.leave);
  const auto wrong = read({"--even", "3"}).leave;
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->text.find("'3' is not 4"), std::string::npos) << wrong->text;
}

TEST(Options, LogFormatAndTheLibrarysLevel) {
  Program program;
  EXPECT_FALSE(program.parse({"--sdk-log-level", "debug", "--log-format", "json"}));
  EXPECT_EQ(program.log.sdk_level, "debug");
  EXPECT_EQ(program.log.format, "json");
  EXPECT_NE(refused({"--sdk-log-level", "loud"}).text.find("'loud' is not one of trace, debug"),
            std::string::npos);
  EXPECT_NE(refused({"--log-format", "xml"}).text.find("'xml' is not one of text, json"),
            std::string::npos);
}

TEST(Options, WordsOfOtherProgramsAreAnswered) {
  const struct {
    const char* word;
    const char* says;
  } cases[] = {
      {"help", "unexpected argument 'help'; did you mean --help?"},
      {"-?", "unknown option '-?'; did you mean --help?"},
      {"version", "unexpected argument 'version'; did you mean --version?"},
      {"-v", "unknown option '-v'; did you mean --version?"},
      {"-V", "unknown option '-V'; did you mean --version?"},
      {"--verbose", "unknown option '--verbose'; did you mean --log-level debug?"},
      {"-vv", "unknown option '-vv'; did you mean --log-level debug?"},
      {"--debug", "unknown option '--debug'; did you mean --log-level debug?"},
      {"-", "unexpected argument '-' ("},
  };
  for (const auto& each : cases) {
    support::expect_refused(refused({each.word}), "the-program", each.says);
  }
}

TEST(Options, AStrayValueIsThatOfTheOptionThatIsMissing) {
  const auto said = [](std::vector<const char*> arguments) {
    CommandLine line("test", "What it does.");
    std::string server;
    std::string name;
    add_text(line, "--name", name, "What");
    add_text(line, "--server", server, "Where").required();
    arguments.insert(arguments.begin(), "test");
    return line.parse(static_cast<int>(arguments.size()), arguments.data()).value_or(Leave{}).text;
  };
  EXPECT_EQ(said({"dpu:1"}),
            "test: unexpected argument 'dpu:1'; did you mean --server dpu:1? (--help lists what is "
            "allowed)");
  EXPECT_EQ(said({"--server", "here", "dpu:1"}),
            "test: unexpected argument 'dpu:1' (--help lists what is allowed)");
}

TEST(Options, Version) {
  const auto leave = refused({"--version"});
  EXPECT_EQ(leave.status, 0);
  EXPECT_EQ(leave.text, "the-program " OFFLOAD_VERSION);
}

TEST(Leave, AnswersGoToOutputAndComplaintsToError) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(leave({0, "an answer"}), 0);
  EXPECT_EQ(leave({2, "a complaint {}"}), 2);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "an answer\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a complaint {}\n");
}

TEST(ReadSizes, TakesAListOfSizesWithinTheLimits) {
  using Sizes = std::vector<std::uint32_t>;
  EXPECT_EQ(read_sizes("1,64,2k", 1, 2048), (Sizes{1, 64, 2048}));
  EXPECT_EQ(read_sizes("5", 5, 5), (Sizes{5}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "0,1", "1,2049", "1;2", "1, x"}) {
    EXPECT_FALSE(read_sizes(text, 1, 2048)) << text;
  }
}

}  // namespace
}  // namespace offload::cli
