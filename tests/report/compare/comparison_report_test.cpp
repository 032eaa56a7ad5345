#include "apps/report/compare/comparison_report.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

/// `count` runs, every 20 s from `begun_s` on, slower than the sample by `slowness`.
Side side_of(const std::string& name, std::size_t count, double begun_s, double slowness = 1) {
  std::vector<report::Run> runs;
  for (std::size_t i = 0; i < count; ++i) {
    report::Run run = sample_run(begun_s + 20 * static_cast<double>(i));
    // A little noise, the same for both sides.
    const double factor = slowness * (1 + 0.01 * static_cast<double>(i % 3));
    run.io_rate_miops /= factor;
    for (double& us : run.service_time_us.us) us *= factor;
    run.service_time_us.count = 1000;
    runs.push_back(run);
  }
  return {name, {sample_result(runs, name)}};
}

ComparisonReport report_of(const std::vector<const char*>& expressions, const Side& base,
                           const Side& candidate) {
  CompareOptions options;
  for (const char* const each : expressions) options.thresholds.push_back(*parse_threshold(each));
  return report_comparison(options, base, candidate);
}

bool says(const ComparisonReport& report, const std::string& text) {
  return report.text.find(text) != std::string::npos;
}

TEST(ComparisonReport, EqualRunsPass) {
  const auto equal = report_of({"p99>1.1", "rate<0.9"}, side_of("a", 5, 0), side_of("b", 5, 10));
  EXPECT_EQ(equal.status, kNothingFound) << equal.text;
  EXPECT_TRUE(says(equal, "5 pairs of runs, alternated")) << equal.text;
  EXPECT_TRUE(says(equal, "p99>1.1: not exceeded")) << equal.text;
  EXPECT_FALSE(says(equal, "warning")) << equal.text;
}

TEST(ComparisonReport, ASlowerOneIsFound) {
  const auto slower =
      report_of({"p99>1.1", "rate<0.9"}, side_of("a", 5, 0), side_of("b", 5, 10, 1.3));
  EXPECT_EQ(slower.status, kFound);
  EXPECT_TRUE(says(slower, "p99>1.1: EXCEEDED: service p99 (us) has the ratio 1.300"))
      << slower.text;
  EXPECT_TRUE(says(slower, "rate<0.9: EXCEEDED")) << slower.text;
}

/// The medians are those of the second run, which is 1 % slower than the first one: 2 / 1.01 and
/// 2 / 1.01 / 1.3 responses a second, 100 * 1.01 and 100 * 1.01 * 1.3 us. All pairs have the same
/// ratio, so the interval of the rate is a point, and that of a latency is a bucket, 1 / 128, wide.
TEST(ComparisonReport, IsATableAndAVerdict) {
  Side base = side_of("a", 5, 0);
  Side slower = side_of("b", 3, 10, 1.3);
  for (Side* side : {&base, &slower}) {
    double factor = side == &base ? 1 : 1.3;
    for (report::Run& run : side->results[0].runs) {
      run.service_time_us.us.fill(100 * factor);
      factor += side == &base ? 0.01 : 0.013;
    }
  }
  const std::string head =
      "BASE  a: 5 runs\nNEW   b: 3 runs\n"
      "warning: 2 runs have no counterpart and are ignored\n3 pairs of runs, alternated\n\n";
  const std::string table =
      "                                BASE           NEW   ratio  95 % interval      noise  BASE "
      "differs\n"
      "rate (1/s)                     1.980         1.523   0.769  0.769 to 0.769     0.0 %        "
      " "
      "2.0 %\n";
  std::string latencies;
  for (const char* const name : {"mean", "p50", "p90", "p95", "p99", "p99.9", "max"}) {
    latencies += fmt::format("{:<22}{}", fmt::format("service {} (us)", name),
                             "         101.0         131.3   1.300  1.290 to 1.310     0.8 %       "
                             "  2.0 %\n");
  }
  const auto found = report_of({"p99>1.1", "p99.99>1.1", "errors>0"}, base, slower);
  EXPECT_EQ(found.text,
            head + table + latencies +
                "\np99>1.1: EXCEEDED: service p99 (us) has the ratio 1.300 (1.290 to 1.310)\n"
                "p99.99>1.1: no verdict: at least one run is too short for it, or has 0\n"
                "errors>0: not exceeded: 0 errors\n");
  EXPECT_EQ(found.status, kFound);
  EXPECT_EQ(report_of({"p99.99>1.1"}, base, slower).text,
            head + table + latencies +
                "\np99.99>1.1: no verdict: at least one run is too short for it, or has 0\n"
                "no verdict\n");
  EXPECT_EQ(report_of({}, side_of("a", 1, 0), side_of("b", 1, 10)).text,
            "BASE  a: 1 run\nNEW   b: 1 run\n"
            "1 pairs of runs: a verdict needs at least 3, a precise one 10\nno verdict\n");
}

TEST(ComparisonReport, NotAlternatedIsAWarning) {
  const auto after = report_of({}, side_of("a", 5, 0), side_of("b", 5, 200));
  EXPECT_TRUE(says(after, "warning: the runs were not alternated")) << after.text;
  EXPECT_EQ(after.status, kNothingFound);
}

TEST(ComparisonReport, TwoPairsTellNothing) {
  const auto few = report_of({"p99>2"}, side_of("a", 2, 0), side_of("b", 2, 10));
  EXPECT_EQ(few.status, kCannotTell);
  EXPECT_TRUE(says(few, "2 pairs of runs: a verdict needs at least 3")) << few.text;
}

TEST(ComparisonReport, AThresholdWithinTheNoiseIsRefused) {
  const auto noisy = report_of({"p99>1.001"}, side_of("a", 5, 0), side_of("b", 5, 10));
  EXPECT_EQ(noisy.status, kCannotTell);
  EXPECT_TRUE(says(noisy, "p99>1.001: no verdict: the noise of service p99 (us) is 0.8 %"))
      << noisy.text;
}

TEST(ComparisonReport, ErrorsComeFirst) {
  Side failed = side_of("b", 5, 10);
  failed.results[0].status = "failed";
  failed.results[0].faults = {"a wrong\nresponse"};
  failed.results[0].runs[1].errors = {{"mismatch", 2}};
  const auto found = report_of({"p99>1.1"}, side_of("a", 5, 0), failed);
  EXPECT_EQ(found.status, kFound);
  EXPECT_TRUE(says(found, "ERRORS: 'b.json' has failed\n  a wrong\\x0aresponse\n  mismatch: 2\n"))
      << found.text;
  EXPECT_LT(found.text.find("ERRORS: NEW has 2"), found.text.find("5 pairs"));
  EXPECT_EQ(report_of({"p99>1.1"}, side_of("a", 5, 0), side_of("b", 0, 0)).status, kCannotTell);
  EXPECT_EQ(report_of({}, side_of("a", 5, 0), {"b", {failed.results[0]}}).status, kFound);
}

TEST(ComparisonReport, UnansweredRequestsAreErrors) {
  Side silent = side_of("b", 5, 10);
  silent.results[0].runs[4].unanswered_requests = 1;
  const auto one = report_of({}, side_of("a", 5, 0), silent);
  EXPECT_EQ(one.status, kFound);
  EXPECT_TRUE(says(one, "  unanswered: 1\nERRORS: NEW has 1\n")) << one.text;
  silent.results[0].runs[2].unanswered_requests = 2;
  const auto three = report_of({}, side_of("a", 5, 0), silent);
  EXPECT_TRUE(says(three, "  unanswered: 3\nERRORS: NEW has 3\n")) << three.text;
}

TEST(ComparisonReport, ABaseWithErrorsIsNothingToCompareWith) {
  Side base = side_of("a", 5, 0);
  base.results[0].runs[0].errors = {{"mismatch", 1}};
  EXPECT_EQ(report_of({}, base, side_of("b", 5, 10)).status, kCannotTell);
}

TEST(ComparisonReport, ErrorsAsAThreshold) {
  const auto none = report_of({"errors>0"}, side_of("a", 5, 0), side_of("b", 5, 10));
  EXPECT_EQ(none.status, kNothingFound);
  EXPECT_TRUE(says(none, "errors>0: not exceeded: 0 errors")) << none.text;
}

/// Sides that are alike, of which `spoil` has changed the third run.
std::pair<Side, Side> spoiled(const std::function<void(report::Run&)>& spoil) {
  std::pair<Side, Side> sides{side_of("a", 5, 0), side_of("b", 5, 10)};
  spoil(sides.second.results[0].runs[2]);
  return sides;
}

TEST(ComparisonReport, ALoadThatWasNotTheOneAskedForHasNoVerdict) {
  for (const char* const code : {"client_late", "server_late", "cut_short", "too_few"}) {
    const auto [good, bad] = spoiled([&](report::Run& run) { run.verdict_code = code; });
    const auto report = report_of({}, good, bad);
    // A server that is late where BASE's kept up is worse.
    EXPECT_EQ(report.status, code == std::string_view("server_late") ? kFound : kCannotTell);
    EXPECT_TRUE(says(report, "warning: in 1 of 5 runs of NEW the")) << report.text;
    EXPECT_FALSE(says(report, "nothing found")) << report.text;
    EXPECT_EQ(report_of({}, bad, good).status, kCannotTell) << code;
    EXPECT_EQ(report_of({}, bad, bad).status, kCannotTell) << code;
  }
}

TEST(ComparisonReport, FewResponsesHaveNoVerdict) {
  const auto [good, bad] = spoiled([](report::Run& run) { run.service_time_us.count = 99; });
  const auto report = report_of({}, good, bad);
  EXPECT_EQ(report.status, kCannotTell);
  EXPECT_TRUE(says(report, "in 1 of 5 runs of NEW there were fewer than 100 right responses"));
  EXPECT_EQ(report_of({}, bad, good).status, kCannotTell);
}

TEST(ComparisonReport, AResponseForTenRequestsIsALateServer) {
  const auto [good, bad] = spoiled([](report::Run& run) {
    run.verdict_code = "kept_up";
    run.offered_per_second = 1000;
  });
  EXPECT_TRUE(says(report_of({}, good, bad), "of NEW the server was late"));
}

TEST(ComparisonReport, AnInterruptedResultHasNoVerdict) {
  Side cut = side_of("b", 5, 10);
  cut.results[0].status = "interrupted";
  const auto report = report_of({}, side_of("a", 5, 0), cut);
  EXPECT_EQ(report.status, kCannotTell);
  EXPECT_TRUE(says(report, "'b.json' was interrupted"));
  EXPECT_EQ(report_of({}, cut, side_of("b", 5, 10)).status, kCannotTell);
}

TEST(ComparisonReport, FaultsAreErrorsWhateverTheStatus) {
  Side faulty = side_of("b", 5, 10);
  faulty.results[0].faults = {"a fault"};
  EXPECT_EQ(report_of({}, side_of("a", 5, 0), faulty).status, kFound);
  EXPECT_EQ(report_of({}, faulty, side_of("b", 5, 10)).status, kCannotTell);
}

TEST(ComparisonReport, WithoutExpressionsASlowerOneIsFound) {
  const auto equal = report_of({}, side_of("a", 5, 0), side_of("b", 5, 10));
  EXPECT_EQ(equal.status, kNothingFound) << equal.text;
  EXPECT_TRUE(says(equal, "rate<0.9: not exceeded")) << equal.text;
  EXPECT_TRUE(says(equal, "p50>1.1: not exceeded")) << equal.text;
  const auto slower = report_of({}, side_of("a", 5, 0), side_of("b", 5, 10, 6));
  EXPECT_EQ(slower.status, kFound) << slower.text;
  EXPECT_TRUE(says(slower, "rate<0.9: EXCEEDED")) << slower.text;
}

TEST(ComparisonReport, LoadsThatDifferInAnOptionAreNotCompared) {
  for (const auto& [name, value, is_load] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"service", "\"echo\"", true},
                                                               {"reconnect_every", "10", true},
                                                               {"server_ip_port", "12346", false},
                                                               {"seed", "7", false}}) {
    Side other = side_of("b", 5, 10, 6);
    auto& options = other.results[0].options;
    std::erase_if(options, [&, of = name](const auto& each) { return each.first == of; });
    options.emplace_back(name, value);
    const auto report = report_of({"p50>1.1"}, side_of("a", 5, 0), other);
    EXPECT_EQ(report.status, is_load ? kCannotTell : kFound) << report.text;
    EXPECT_EQ(says(report, "the loads differ: " + name), is_load) << report.text;
  }
}

TEST(ComparisonReport, AFigureNeedsLatenciesBeyondIt) {
  Side few = side_of("b", 5, 10, 6);
  few.results[0].runs[2].service_time_us.count = 99;
  const auto report = report_of({"p99>1.1"}, side_of("a", 5, 0), few);
  EXPECT_EQ(report.status, kCannotTell) << report.text;
  EXPECT_FALSE(says(report, "service p99 ")) << report.text;
  EXPECT_EQ(report_of({"p95>1.1"}, side_of("a", 5, 0), few).status, kFound);
}

TEST(ComparisonReport, FoundCountsForMoreThanUntold) {
  const auto both = report_of({"errors<1", "p50>1.005"}, side_of("a", 5, 0), side_of("b", 5, 10));
  EXPECT_EQ(both.status, kFound);
  EXPECT_TRUE(says(both, "p50>1.005: no verdict")) << both.text;
}

}  // namespace
}  // namespace offload::report
