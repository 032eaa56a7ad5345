#include "apps/report/page/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace offload::report {
namespace {

// Heights, and the places of texts beside a point, are CSS pixels. Widths are shares of the plot,
// so that a drawing is as wide as its page has room and its text stays as large as that of the
// page.
constexpr double kHeight = 290;
constexpr double kTop = 14;
constexpr double kBottom = kHeight - 44;
constexpr double kLabelHeight = 16;
/// The width of the plot in the units of its lines.
constexpr double kUnits = 1000;
/// The narrowest plots, in CSS pixels: of a page of two columns, and of a telephone's of 390
/// pixels.
constexpr double kWidePlot = 464;
constexpr double kNarrowPlot = 206;
constexpr double kCharacter = 6.5;  // of percentages of 12 pixels, in the mean
constexpr double kBetweenTicks = 6;
/// More names would be a column that no reader can match with the lines.
constexpr std::size_t kMostLabels = 12;

double share_of(const Axis& axis, double value) {
  if (axis.logarithmic) {
    return std::log(std::max(value, axis.low) / axis.low) / std::log(axis.high / axis.low);
  }
  return (value - axis.low) / (axis.high - axis.low);
}

double x_of(const Chart& chart, double value) {
  return kUnits * share_of(chart.x, value);
}

/// A place on the x axis as an attribute of the plot: "12.5%".
std::string percent_of(double x) {
  return fmt::format("{:.2f}%", 100 * x / kUnits);
}

/// Each how many-th tick of the x axis has a label if the plot has this width.
std::size_t label_step(const Axis& axis, double width) {
  std::size_t longest = 1;
  for (const Tick& tick : axis.ticks) longest = std::max(longest, tick.text.size());
  const double room = width / (kCharacter * static_cast<double>(longest) + kBetweenTicks);
  const double step = static_cast<double>(axis.ticks.size()) / std::max(1.0, std::floor(room));
  return static_cast<std::size_t>(std::max(1.0, std::ceil(step)));
}

double y_of(const Chart& chart, double value) {
  return kBottom - (kBottom - kTop) * share_of(chart.y, value);
}

void draw_axes(const Chart& chart, std::string& svg) {
  auto out = std::back_inserter(svg);
  for (const Tick& tick : chart.y.ticks) {
    const double y = y_of(chart, tick.value);
    fmt::format_to(out, R"(<line class="grid" x1="0" x2="100%" y1="{0:.1f}" y2="{0:.1f}"/>)", y);
    fmt::format_to(out, R"(<text x="-8" y="{:.1f}" text-anchor="end">{}</text>)", y + 4, tick.text);
  }
  const std::size_t wide = label_step(chart.x, kWidePlot);
  const std::size_t narrow = wide * ((label_step(chart.x, kNarrowPlot) + wide - 1) / wide);
  for (std::size_t i = 0; i < chart.x.ticks.size(); ++i) {
    const Tick& tick = chart.x.ticks[i];
    const std::string x = percent_of(x_of(chart, tick.value));
    fmt::format_to(out, R"(<line class="axis" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>)", x, kBottom,
                   kBottom + 4);
    if (i % wide != 0) continue;
    fmt::format_to(out, R"(<text{} x="{}" y="{}" text-anchor="middle">{}</text>)",
                   i % narrow == 0 ? "" : R"( class="where-wide")", x, kBottom + 18, tick.text);
  }
  fmt::format_to(out, R"(<line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>)", kBottom);
  fmt::format_to(out, R"(<text x="50%" y="{}" text-anchor="middle">{}</text>)", kHeight - 6,
                 chart.x_title);
  fmt::format_to(out, R"(<line class="cursor" x1="0" x2="0" y1="{}" y2="{}"/>)", kTop, kBottom);
  fmt::format_to(out, R"(<rect class="area" x="0" y="{}" width="100%" height="{}"/>)", kTop,
                 kBottom - kTop);
}

void draw_line(const Chart& chart, const Series& series, std::string& svg) {
  std::string points;
  std::string at;
  std::string values;
  for (const ChartPoint& point : series.points) {
    const char* const blank = points.empty() ? "" : " ";
    const char* const bar = points.empty() ? "" : "|";
    points += fmt::format("{}{:.1f},{:.1f}", blank, x_of(chart, point.x), y_of(chart, point.y));
    at += bar + point.at;
    values += bar + point.value;
  }
  svg += fmt::format(
      R"(<polyline class="{}" points="{}" data-name="{}" data-at="{}" data-values="{}"/>)",
      classes_of(series.style), points, series.name, at, values);
}

/// A line of one point is a dot.
void draw_dot(const Chart& chart, const Series& series, std::string& svg) {
  if (series.points.size() != 1) return;
  svg += fmt::format(R"(<circle class="{} dot" cx="{}" cy="{:.1f}" r="3.5"/>)",
                     classes_of(series.style), percent_of(x_of(chart, series.points.front().x)),
                     y_of(chart, series.points.front().y));
}

struct Label {
  const Series* series;
  double x;
  double y;
  double lines;
};

/// The names at the lines' ends; lines with the same name have one, at their middle.
std::vector<Label> labels_of(const Chart& chart) {
  std::vector<Label> labels;
  for (const Series& series : chart.series) {
    if (series.label.empty()) continue;
    const double x = x_of(chart, series.points.back().x);
    const double y = y_of(chart, series.points.back().y);
    const auto same = std::ranges::find_if(
        labels, [&](const Label& each) { return each.series->label == series.label; });
    if (same == labels.end()) {
      labels.push_back({&series, x, y, 1});
      continue;
    }
    same->x = std::max(same->x, x);
    same->y += (y - same->y) / ++same->lines;
  }
  return labels;
}

/// Moves names apart that lie on each other, each as far as the other, within the drawing.
void spread(std::vector<Label>& labels) {
  std::ranges::sort(labels, {}, &Label::y);
  constexpr int kRounds = 100;  // each brings twelve names on one place nearer to where they fit
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 1; i < labels.size(); ++i) {
      const double missing = kLabelHeight - (labels[i].y - labels[i - 1].y);
      if (missing <= 0) continue;
      labels[i - 1].y =
          std::max(labels[i - 1].y - missing / 2, kTop + kLabelHeight * static_cast<double>(i - 1));
      labels[i].y = labels[i - 1].y + kLabelHeight;
    }
    double lowest = kBottom;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label, lowest -= kLabelHeight) {
      label->y = std::min(label->y, lowest);
    }
  }
}

/// To the right of all lines.
void draw_labels(const Chart& chart, std::string& svg) {
  std::vector<Label> labels = labels_of(chart);
  if (labels.size() > kMostLabels) return;
  spread(labels);
  double x = 0;
  for (const Label& label : labels) x = std::max(x, label.x);
  for (const Label& label : labels) {
    svg += fmt::format(R"(<text class="label c{}" x="{}" dx="7" y="{:.1f}">{}</text>)",
                       label.series->style % kColours, percent_of(x), label.y + 4,
                       label.series->label);
  }
}

}  // namespace

std::string classes_of(std::size_t style) {
  return fmt::format("c{}{}", style % kColours, style / kColours % 2 == 1 ? " dashed" : "");
}

std::string draw(const Chart& chart) {
  std::string svg = fmt::format(
      R"(<figure class="chart"><figcaption>{0} <span>{1}</span></figcaption>)"
      R"(<svg class="plot" height="{2}" role="img" aria-label="{0}, {1}" tabindex="0">)",
      chart.title, chart.unit, kHeight);
  draw_axes(chart, svg);
  svg += fmt::format(
      R"(<svg class="lines" viewBox="0 0 {} {}" preserveAspectRatio="none" width="100%" height="{}">)",
      kUnits, kHeight, kHeight);
  for (const Series& series : chart.series) draw_line(chart, series, svg);
  svg += "</svg>";
  for (const Series& series : chart.series) draw_dot(chart, series, svg);
  draw_labels(chart, svg);
  return svg + "</svg><div class=\"tip\" hidden></div></figure>\n";
}

}  // namespace offload::report
