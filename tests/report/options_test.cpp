#include "apps/report/options.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/command_line.hpp"

namespace offload::report {
namespace {

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-report");
}

template <class Command>
Command accepted(std::vector<const char*> arguments) {
  return std::get<Command>(support::accepted(parse(std::move(arguments))));
}

TEST(ReportOptions, Merge) {
  const auto options = accepted<MergeOptions>({"merge", "a", "b", "-o", "c", "--hlog", "d"});
  EXPECT_EQ(options.results, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.output, "c");
  EXPECT_EQ(options.histogram_log, "d");
  EXPECT_EQ(accepted<MergeOptions>({"merge", "--output=c", "a"}).histogram_log, "");
}

TEST(ReportOptions, Html) {
  const auto options = accepted<HtmlOptions>({"html", "-o", "c", "a"});
  EXPECT_EQ(options.results, (std::vector<std::string>{"a"}));
  EXPECT_EQ(options.output, "c");
}

TEST(ReportOptions, Compare) {
  const auto options = accepted<CompareOptions>(
      {"compare", "--fail", "p99>1.2", "base", "--fail", "rate < 0.9", "new"});
  EXPECT_EQ(options.base, "base");
  EXPECT_EQ(options.candidate, "new");
  ASSERT_EQ(options.thresholds.size(), 2U);
  EXPECT_EQ(options.thresholds[1].text, "rate<0.9");
}

TEST(ReportOptions, RefusesTheRestInOneLine) {
  for (const std::vector<const char*>& wrong :
       std::vector<std::vector<const char*>>{{},
                                             {"merge"},
                                             {"merge", "a"},
                                             {"merge", "-o", "b"},
                                             {"html", "a"},
                                             {"html", "a", "-o", "b", "--hlog", "c"},
                                             {"compare", "a"},
                                             {"compare", "a", "b", "c"},
                                             {"compare", "a", "b", "--fail", "p98>1"},
                                             {"compare", "a", "b", "--fail"},
                                             {"plot", "a"}}) {
    const auto result = parse(wrong);
    const auto* const leave = std::get_if<cli::Leave>(&result);
    ASSERT_NE(leave, nullptr);
    EXPECT_EQ(leave->status, cli::kUsageError);
    EXPECT_EQ(leave->text.find('\n'), std::string::npos) << leave->text;
  }
}

}  // namespace
}  // namespace offload::report
