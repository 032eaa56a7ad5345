#include "apps/report/page/plots.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/results/sample.hpp"

namespace offload::report {
namespace {

using namespace results;

std::vector<std::string> titles_of(const std::vector<Chart>& charts) {
  std::vector<std::string> titles;
  for (const Chart& chart : charts) titles.push_back(chart.title);
  return titles;
}

std::vector<Chart> charts_of(const std::vector<Result>& results) {
  return make_charts(list_runs(results));
}

/// "0=0 5=5 s"
std::string ticks_in(const Axis& axis) {
  std::string text;
  for (const Tick& tick : axis.ticks) {
    text += fmt::format("{}{:g}={}", text.empty() ? "" : " ", tick.value, tick.text);
  }
  return text;
}

/// Name, label and style of each line: "run 1|A|0, offered|offered|15".
std::string lines_in(const Chart& chart) {
  std::string text;
  for (const Series& each : chart.series) {
    text += fmt::format("{}{}|{}|{}", text.empty() ? "" : ", ", each.name, each.label, each.style);
  }
  return text;
}

/// "1.5, 2: 'at 1.5 s' '2.0 /s'; ..."
std::string points_in(const Series& series) {
  std::string text;
  for (const ChartPoint& point : series.points) {
    text += fmt::format("{}{:g}, {:g}: '{}' '{}'", text.empty() ? "" : "; ", point.x, point.y,
                        point.at, point.value);
  }
  return text;
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
  for (int i = 0; i < 10; ++i) {
    intervals.push_back(interval_of(i, 1, {100, 100 * (i + 1)}));
    intervals.back().errors = 10 + static_cast<std::uint64_t>(i);
    intervals.back().response_time_us = interval_of(i, 1, {200 * (i + 1)}).service_time_us;
  }
  const auto condensed = condense(intervals, 4);
  ASSERT_EQ(condensed.size(), 4U);
  EXPECT_EQ(condensed[0].operations, 6U);
  EXPECT_EQ(condensed[0].length_s, 3);
  EXPECT_EQ(condensed[0].service_time_us.max, 300);
  EXPECT_EQ(condensed[0].service_time_us.histogram, encoded({100, 100, 100, 200, 100, 300}));
  EXPECT_EQ(condensed[0].valid, 6U);
  EXPECT_EQ(condensed[0].errors, 33U);
  ASSERT_TRUE(condensed[0].response_time_us);
  EXPECT_EQ(condensed[0].response_time_us->histogram, encoded({200, 400, 600}));
  EXPECT_EQ(condensed[0].response_time_us->max, 600);
  EXPECT_EQ(condensed[3].operations, 2U);
  EXPECT_EQ(condensed[3].errors, 19U);
  EXPECT_EQ(condense(intervals, 10).size(), 10U);
}

/// After 3 s of warm-up come 6 responses in a second and 2 in two seconds. An axis ends 12 % above
/// the highest point: at 6.72 /s and at 649.6 us, which take steps of 2 and of 200 to have at most
/// six ticks. The 17 s of the run take steps of 5 to have at most eight.
TEST(Plots, AxesBeginAtZeroAndHaveRoundTicks) {
  report::Run run = sample_run();
  run.warmup_seconds = 3;
  run.duration_seconds = 17;
  run.intervals = {interval_of(3, 1, {100, 100, 100, 100, 100, 580}),
                   interval_of(4, 2, {100, 580})};
  const auto charts = charts_of({sample_result({run})});
  const Chart& throughput = charts.at(0);
  EXPECT_EQ(points_in(throughput.series.at(0)),
            "0.5, 6: 'at 0.5 s' '6.0 /s'; 2, 1: 'at 2.0 s' '1.0 /s'");
  EXPECT_EQ(throughput.y.low, 0);
  EXPECT_DOUBLE_EQ(throughput.y.high, 6.72);
  EXPECT_EQ(ticks_in(throughput.y), "0=0 2=2 4=4 6=6");
  EXPECT_EQ(throughput.x.high, 17);
  EXPECT_EQ(ticks_in(throughput.x), "0=0 5=5 10=10 15=15");
  const Chart& latency = charts.at(2);
  EXPECT_EQ(points_in(latency.series.at(0)),
            "0.5, 580: 'at 0.5 s' '580 µs'; 2, 580: 'at 2.0 s' '580 µs'");
  EXPECT_DOUBLE_EQ(latency.y.high, 649.6);
  EXPECT_EQ(ticks_in(latency.y), "0=0 200=200 µs 400=400 µs 600=600 µs");
  EXPECT_EQ(latency.unit, "");
}

TEST(Plots, AxesOfSmallNumbers) {
  report::Run run = sample_run();
  run.intervals = {interval_of(0, 2, {100})};
  run.intervals[0].service_time_us.p50 = 0.5;
  run.intervals[0].service_time_us.max = 50;
  const auto charts = charts_of({sample_result({run})});
  EXPECT_DOUBLE_EQ(charts.at(0).y.high, 0.56);
  EXPECT_EQ(ticks_in(charts.at(0).x), "0=0 0.5=0.5 1=1 1.5=1.5 2=2");
  EXPECT_EQ(ticks_in(charts.at(2).y), "0.5=500 ns 1=1 µs 2=2 µs 5=5 µs 10=10 µs 20=20 µs 50=50 µs");
}

TEST(Plots, LinesHaveNamesLabelsAndStyles) {
  report::Run open = open_loop_run();
  for (RunInterval& interval : open.intervals) interval.service_time_us.count = 100;
  auto charts = charts_of({sample_result({open})});
  EXPECT_EQ(lines_in(charts.at(0)), "run 1|achieved|0, offered|offered|15");
  EXPECT_EQ(lines_in(charts.at(1)), "response|response|1, service|service|0");
  EXPECT_EQ(lines_in(charts.at(2)), "max|max|2, p99|p99|1, p50|p50|0");
  charts = charts_of({sample_result({sample_run()})});
  EXPECT_EQ(lines_in(charts.at(0)), "run 1||0");
  EXPECT_EQ(lines_in(charts.at(1)), "run 1||0");
  charts = charts_of({sample_result({sample_run()}), sample_result({sample_run()})});
  for (const Chart& chart : charts) EXPECT_EQ(lines_in(chart), "run A|A|0, run B|B|1");
  charts = charts_of({sample_result({open_loop_run()}), sample_result({open_loop_run()})});
  EXPECT_EQ(lines_in(charts.at(0)), "run A|A|0, run B|B|1, offered|offered|15");
  EXPECT_EQ(lines_in(charts.at(2)), "run A|A|0, run B|B|1");
}

/// Twenty points in each power of ten of 1 / (1 - q), then the largest latency. 10^(6/20) is
/// 1.995, of which q is 0.499: the fifth of ten. 10^(7/20) is 2.239 and q 0.553: the sixth.
TEST(Plots, PercentilesAreThoseOfTheHistogram) {
  report::Run run = sample_run();
  run.service_time_us = latency_of({100, 200, 300, 400, 500, 600, 700, 800, 900, 1000});
  Chart chart = charts_of({sample_result({run})}).at(1);
  std::vector<ChartPoint> points = chart.series.at(0).points;
  ASSERT_EQ(points.size(), 21U);
  for (const auto& [at, x, us] : std::vector<std::tuple<std::size_t, double, double>>{
           {0, 1, 100}, {6, 1.9953, 500}, {7, 2.2387, 600}, {19, 8.9125, 900}, {20, 10, 1000}}) {
    EXPECT_NEAR(points[at].x, x, 1e-4) << at;
    EXPECT_NEAR(points[at].y, us, us / 256) << at << ": half a bucket";
  }
  EXPECT_EQ(points.back().at, "90 % took at most");
  EXPECT_EQ(points.back().value, "1 ms");
  EXPECT_EQ(chart.x.low, 1);
  EXPECT_EQ(chart.x.high, 10);
  EXPECT_EQ(ticks_in(chart.x), "2=50 % 10=90 %");

  run.service_time_us.count = 2000;
  chart = charts_of({sample_result({run})}).at(1);
  EXPECT_EQ(chart.x.high, 2000);
  EXPECT_EQ(ticks_in(chart.x), "2=50 % 10=90 % 100=99 % 1000=99.9 %");

  run.service_time_us = latency_of({7});
  chart = charts_of({sample_result({run})}).at(1);
  EXPECT_EQ(points_in(chart.series.at(0)), "2, 7: '50 % took at most' '7 µs'");
  EXPECT_EQ(chart.x.high, 10);
}

TEST(Plots, ALineOverTimeHasAtMost360Points) {
  report::Run run = sample_run();
  run.intervals.assign(361, interval_of(0, 1, {100}));
  EXPECT_EQ(charts_of({sample_result({run})}).at(0).series.at(0).points.size(), 181U);
  run.intervals.pop_back();
  EXPECT_EQ(charts_of({sample_result({run})}).at(0).series.at(0).points.size(), 360U);
}

}  // namespace
}  // namespace offload::report
