#include "apps/report/page/plots.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "apps/report/histograms.hpp"
#include "apps/report/numbers.hpp"

namespace offload::report {
namespace {

/// Latencies that spread further have a logarithmic axis.
constexpr double kLinearSpread = 20;
constexpr double kAroundLines = 1.12;
/// Dashed and grey: a line that was not measured.
constexpr std::size_t kOfferedStyle = 2 * kColours - 1;

using Value = std::function<std::optional<double>(const RunInterval&)>;
using Text = std::string (*)(double);

std::string per_second_text(double rate) {
  return grouped(rate, rate < 1000 ? 1 : 0) + " /s";
}

/// A line of `value` over the seconds since the measurement began.
Series over_time(const ShownRun& shown, const std::vector<RunInterval>& intervals,
                 const Value& value, Text text) {
  Series series{"run " + shown.name, shown.label, shown.style, {}};
  for (const RunInterval& interval : intervals) {
    const auto y = value(interval);
    if (!y) continue;
    const double x =
        std::max(0.0, interval.start_s - shown.run->warmup_seconds) + interval.length_s / 2;
    series.points.push_back({x, *y, fmt::format("at {} s", grouped(x, 1)), text(*y)});
  }
  return series;
}

template <class Get>
std::pair<double, double> range_of(const std::vector<Series>& series, Get get) {
  double low = INFINITY;
  double high = 0;
  for (const Series& each : series) {
    for (const ChartPoint& point : each.points) {
      low = std::min(low, get(point));
      high = std::max(high, get(point));
    }
  }
  return {low, high};
}

std::vector<Tick> ticks_of(const std::vector<double>& values, Text text) {
  std::vector<Tick> ticks;
  for (const double value : values) ticks.push_back({value, text(value)});
  return ticks;
}

/// From 0, as a cut axis makes a ripple look like a wave.
Axis linear_axis(double high, int most_ticks, Text text) {
  Axis axis;
  axis.high = high > 0 ? high : 1;
  axis.ticks = ticks_of(linear_ticks(0, axis.high, most_ticks), text);
  return axis;
}

Axis latency_axis(const std::vector<Series>& series) {
  const auto [low, high] = range_of(series, [](const ChartPoint& point) { return point.y; });
  if (!(low > 0) || high < kLinearSpread * low)
    return linear_axis(high * kAroundLines, 6, time_text);
  Axis axis;
  std::tie(axis.low, axis.high) = rounded_range(low, high);
  axis.logarithmic = true;
  axis.ticks = ticks_of(log_ticks(axis.low, axis.high), time_text);
  return axis;
}

Axis time_axis(const std::vector<ShownRun>& runs) {
  double longest = 0;
  for (const ShownRun& each : runs) longest = std::max(longest, each.run->duration_seconds);
  return linear_axis(longest, 8, [](double value) {
    return value == std::floor(value) ? grouped(value, 0) : short_text(value);
  });
}

/// Draws `series` if any of it has points.
void add_chart(Chart chart, std::vector<Chart>& charts) {
  const auto is_empty = [](const Series& each) { return each.points.empty(); };
  chart.series.erase(std::remove_if(chart.series.begin(), chart.series.end(), is_empty),
                     chart.series.end());
  if (!chart.series.empty()) charts.push_back(std::move(chart));
}

struct Timed {
  ShownRun shown;
  std::vector<RunInterval> intervals;
};

constexpr const char* kTimeTitle = "seconds since the measurement began";

void add_throughput(const std::vector<Timed>& runs, const Axis& time, std::vector<Chart>& charts) {
  Chart chart{"Throughput", "responses a second", kTimeTitle, time, {}, {}};
  const Value rate = [](const RunInterval& interval) -> std::optional<double> {
    if (interval.length_s <= 0) return std::nullopt;
    return static_cast<double>(interval.operations) / interval.length_s;
  };
  for (const Timed& run : runs) {
    chart.series.push_back(over_time(run.shown, run.intervals, rate, per_second_text));
  }
  if (runs.size() == 1) chart.series.front().label = "achieved";
  std::set<double> drawn;  // runs that were offered the same rate share a line
  for (const Timed& run : runs) {
    const auto offered = run.shown.run->offered_per_second;
    if (!offered || !drawn.insert(*offered).second) continue;
    const Value same = [=](const RunInterval&) { return offered; };
    chart.series.push_back(over_time(run.shown, run.intervals, same, per_second_text));
    chart.series.back().name = chart.series.back().label = "offered";
    chart.series.back().style = kOfferedStyle;
  }
  if (drawn.empty() && runs.size() == 1) chart.series.front().label.clear();
  const auto highest = range_of(chart.series, [](const ChartPoint& point) { return point.y; });
  chart.y = linear_axis(highest.second * kAroundLines, 6, short_text);
  add_chart(std::move(chart), charts);
}

struct Measure {
  const char* name;
  double IntervalLatency::*member;
  Statistic statistic;
};
constexpr std::array kMeasures = {Measure{"max", &IntervalLatency::max, Statistic::max},
                                  Measure{"p99", &IntervalLatency::p99, Statistic::p99},
                                  Measure{"p50", &IntervalLatency::p50, Statistic::p50}};

/// Service or response time of an interval, if it has enough responses.
Value value_of(const Measure& measure, bool response) {
  return [=](const RunInterval& interval) -> std::optional<double> {
    if (response && !interval.response_time_us) return std::nullopt;
    const IntervalLatency& latency =
        response ? *interval.response_time_us : interval.service_time_us;
    if (!latency.has(measure.statistic)) return std::nullopt;
    return latency.*measure.member;
  };
}

std::string unit_of(const Axis& axis) {
  return axis.logarithmic ? "logarithmic" : "";
}

void add_latency_chart(const std::string& title, const Axis& time, std::vector<Series> series,
                       std::vector<Chart>& charts) {
  Chart chart{title, {}, kTimeTitle, time, latency_axis(series), std::move(series)};
  chart.unit = unit_of(chart.y);
  add_chart(std::move(chart), charts);
}

/// One run: all measures in one chart. Several: a chart of each, so that lines of one kind meet.
void add_latency(const std::vector<Timed>& runs, const Axis& time, bool response,
                 std::vector<Chart>& charts) {
  const std::string title = response ? "Response time" : "Service time";
  std::vector<Series> together;
  for (const Measure& measure : kMeasures) {
    const std::string name = measure.name;
    std::vector<Series> lines;
    for (const Timed& run : runs) {
      lines.push_back(over_time(run.shown, run.intervals, value_of(measure, response), time_text));
    }
    if (runs.size() > 1) {
      add_latency_chart(title + ", " + name, time, std::move(lines), charts);
      continue;
    }
    together.push_back(std::move(lines.front()));
    together.back().name = together.back().label = name;
    together.back().style = kMeasures.size() - together.size();
  }
  if (!together.empty()) add_latency_chart(title, time, std::move(together), charts);
}

/// "99.9 %" of 1000, with the digits that tell it from its neighbours.
std::string percentile_text(double x) {
  const int decimals = 1 + static_cast<int>(std::log10(x) + 1e-9);
  std::string text = fmt::format("{:.{}f}", 100 * (1 - 1 / x), decimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " %";
}

/// Percentiles at even steps of log 1/(1-q), up to the last one that the number of latencies has.
std::vector<ChartPoint> percentiles_of(const Latency& latency) {
  constexpr double kStepsPerDecade = 20;
  std::vector<ChartPoint> points;
  if (latency.count == 0) return points;
  HistogramSum sum;
  sum.add(latency);
  const auto count = static_cast<double>(latency.count);
  const auto add = [&](double x, double us) {
    points.push_back({x, us, percentile_text(x) + " took at most", time_text(us)});
  };
  for (double step = 0;; ++step) {
    const double x = std::pow(10, step / kStepsPerDecade);
    if (x >= count) break;
    const std::chrono::duration<double, std::micro> time = sum.histogram().percentile(1 - 1 / x);
    add(x, std::clamp(time.count(), latency.at(Statistic::min), latency.at(Statistic::max)));
  }
  add(std::max(count, 2.0), latency.at(Statistic::max));
  return points;
}

Axis percentile_axis(const std::vector<Series>& series) {
  Axis axis;
  axis.low = 1;
  axis.high =
      std::max(10.0, range_of(series, [](const ChartPoint& each) { return each.x; }).second);
  axis.logarithmic = true;
  axis.ticks = {{2, "50 %"}};
  for (const double x : log_ticks(10, std::max(axis.high, 1e4))) {
    if (x <= axis.high) axis.ticks.push_back({x, percentile_text(x)});
  }
  return axis;
}

void add_percentile_chart(const std::string& title, const std::vector<Series>& series,
                          std::vector<Chart>& charts) {
  if (series.empty()) return;
  Chart chart{
      title, {}, "percentile, as 1 / (1 - q)", percentile_axis(series), latency_axis(series),
      series};
  chart.unit = unit_of(chart.y);
  add_chart(std::move(chart), charts);
}

/// One run: both latencies in one chart. Several: a chart of each.
void add_percentiles(const std::vector<ShownRun>& runs, std::vector<Chart>& charts) {
  const bool together = runs.size() == 1;
  std::vector<Series> service;
  std::vector<Series> response;
  for (const ShownRun& shown : runs) {
    const std::string name = "run " + shown.name;
    service.push_back({name, shown.label, shown.style, percentiles_of(shown.run->service_time_us)});
    if (shown.run->response_time_us) {
      response.push_back(
          {name, shown.label, shown.style, percentiles_of(*shown.run->response_time_us)});
    }
  }
  if (together && !response.empty()) {
    service.front().name = service.front().label = "service";
    response.front().name = response.front().label = "response";
    response.front().style = 1;
    add_percentile_chart("Service and response time by percentile",
                         {response.front(), service.front()}, charts);
    return;
  }
  if (together) service.front().label.clear();
  add_percentile_chart("Service time by percentile", service, charts);
  add_percentile_chart("Response time by percentile", response, charts);
}

}  // namespace

std::vector<RunInterval> condense(const std::vector<RunInterval>& intervals, std::size_t most) {
  const std::size_t size = (intervals.size() + most - 1) / most;
  if (size <= 1) return intervals;
  std::vector<RunInterval> condensed;
  for (std::size_t at = 0; at < intervals.size(); at += size) {
    const std::size_t end = std::min(at + size, intervals.size());
    RunInterval whole = intervals[at];
    HistogramSum service;
    HistogramSum response;
    for (std::size_t i = at; i < end; ++i) {
      const RunInterval& each = intervals[i];
      service.add(each.service_time_us);
      if (each.response_time_us) response.add(*each.response_time_us);
      whole.length_s = each.start_s + each.length_s - whole.start_s;
      if (i == at) continue;
      whole.operations += each.operations;
      whole.valid += each.valid;
      whole.errors += each.errors;
    }
    whole.service_time_us = service.interval();
    if (whole.response_time_us) whole.response_time_us = response.interval();
    condensed.push_back(std::move(whole));
  }
  return condensed;
}

std::vector<Chart> make_charts(const std::vector<ShownRun>& runs) {
  const std::vector<ShownRun> drawn(
      runs.begin(),
      runs.begin() + static_cast<std::ptrdiff_t>(std::min(runs.size(), kMostRunsDrawn)));
  std::vector<Timed> timed;
  for (const ShownRun& shown : drawn) {
    timed.push_back({shown, condense(shown.run->intervals, kMostPoints)});
  }
  std::vector<Chart> charts;
  const Axis time = time_axis(drawn);
  if (!timed.empty()) {
    add_throughput(timed, time, charts);
    add_percentiles(drawn, charts);
    add_latency(timed, time, false, charts);
    add_latency(timed, time, true, charts);
  }
  return charts;
}

}  // namespace offload::report
