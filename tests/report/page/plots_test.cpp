#include "apps/report/page/plots.hpp"

#include <gtest/gtest.h>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

std::vector<std::string> titles_of(const std::vector<Chart>& charts) {
  std::vector<std::string> titles;
  for (const Chart& chart : charts) titles.push_back(chart.title);
  return titles;
}

TEST(RunList, NamesAndStyles) {
  const std::vector<Result> one = {sample_result({sample_run(), sample_run(5)})};
  EXPECT_EQ(list_runs(one).at(1).name, "2");
  EXPECT_EQ(list_runs(one).at(1).style, 1U);
  const std::vector<Result> two = {sample_result({sample_run(), sample_run(5)}),
                                   sample_result({sample_run()})};
  EXPECT_EQ(list_runs(two).at(1).name, "A2");
  EXPECT_EQ(list_runs(two).at(1).label, "A");
  EXPECT_EQ(list_runs(two).at(2).name, "B");
  EXPECT_EQ(list_runs(two).at(2).style, 1U);
  EXPECT_EQ(letter_of(26, 30), "R27");
}

TEST(Plots, OfOneRun) {
  const std::vector<Result> results = {sample_result({open_loop_run()})};
  const auto charts = make_charts(list_runs(results));
  EXPECT_EQ(titles_of(charts),
            (std::vector<std::string>{"Throughput", "Service and response time by percentile",
                                      "Service time", "Response time"}));
  EXPECT_EQ(charts[0].series.at(0).points.at(1).y, 2) << "operations a second";
  EXPECT_EQ(charts[0].series.at(0).points.at(1).x, 1.5) << "the middle of the interval";
  const Series& max = charts[2].series.at(0);
  EXPECT_EQ(max.label, "max");
  EXPECT_EQ(max.points.at(1).value, "400 µs");
  EXPECT_EQ(charts[1].series.at(1).points.back().x, 4) << "1 / (1 - q) of the largest of four";
  EXPECT_EQ(charts[1].series.at(1).points.back().y, 400);
}

TEST(Plots, OfSeveralRuns) {
  const std::vector<Result> results = {sample_result({sample_run()}),
                                       sample_result({sample_run(5)})};
  const auto charts = make_charts(list_runs(results));
  EXPECT_EQ(titles_of(charts),
            (std::vector<std::string>{"Throughput", "Service time by percentile",
                                      "Service time, max", "Service time, p50"}));
  for (const Chart& chart : charts) EXPECT_EQ(chart.series.size(), 2U) << chart.title;
}

TEST(Plots, APercentileOverTimeNeedsLatenciesBeyondIt) {
  report::Run run = sample_run();
  const auto p99_of = [&] {
    const std::vector<Result> results = {sample_result({run})};
    const auto charts = make_charts(list_runs(results));
    std::size_t points = 0;
    for (const Series& series : charts.at(2).series) {
      if (series.name == "p99") points = series.points.size();
    }
    return points;
  };
  EXPECT_EQ(p99_of(), 0U);
  run.intervals[0].service_time_us.count = 100;
  EXPECT_EQ(p99_of(), 1U);
}

TEST(Plots, TheOfferedRateIsDrawnOnceForRunsThatShareIt) {
  report::Run faster = open_loop_run(10);
  faster.offered_per_second = 3;
  const std::vector<Result> results = {sample_result({open_loop_run(), open_loop_run(5), faster})};
  const Chart throughput = make_charts(list_runs(results)).at(0);
  ASSERT_EQ(throughput.series.size(), 5U);
  EXPECT_EQ(throughput.series[3].name, "offered");
  EXPECT_EQ(throughput.series[3].points.at(1).y, 2);
  EXPECT_EQ(throughput.series[4].points.at(1).y, 3);
  EXPECT_GT(throughput.y.high, 3);
  const std::vector<Result> closed = {sample_result({sample_run()})};
  EXPECT_EQ(make_charts(list_runs(closed)).at(0).series.size(), 1U);
}

TEST(Plots, NothingToDraw) {
  report::Run idle = sample_run();
  idle.service_time_us = latency_of({});
  idle.duration_seconds = 0;
  idle.intervals = {interval_of(0, 0, {})};
  const std::vector<Result> results = {sample_result({idle}), sample_result({})};
  EXPECT_TRUE(make_charts(list_runs(results)).empty());
  EXPECT_TRUE(make_charts({}).empty());
}

TEST(Plots, AWideRangeIsLogarithmic) {
  report::Run run = sample_run();
  run.intervals = {interval_of(0, 1, {10}), interval_of(1, 1, {1000})};
  const std::vector<Result> results = {sample_result({run})};
  const auto charts = make_charts(list_runs(results));
  EXPECT_FALSE(charts.at(1).y.logarithmic);
  EXPECT_TRUE(charts.at(2).y.logarithmic);
  EXPECT_EQ(charts.at(2).unit, "logarithmic");
}

TEST(Plots, ALongRunIsCondensed) {
  std::vector<RunInterval> intervals;
  for (int i = 0; i < 10; ++i) intervals.push_back(interval_of(i, 1, {100, 100 * (i + 1)}));
  const auto condensed = condense(intervals, 4);
  ASSERT_EQ(condensed.size(), 4U);
  EXPECT_EQ(condensed[0].operations, 6U);
  EXPECT_EQ(condensed[0].length_s, 3);
  EXPECT_EQ(condensed[0].service_time_us.max, 300);
  EXPECT_EQ(condensed[0].service_time_us.histogram, encoded({100, 100, 100, 200, 100, 300}));
  EXPECT_EQ(condensed[3].operations, 2U);
  EXPECT_EQ(condense(intervals, 10).size(), 10U);
}

}  // namespace
}  // namespace offload::report
