#include "apps/report/page/chart.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace offload::report {
namespace {

using namespace results;

Chart sample_chart() {
  Chart chart{"Throughput", "responses a second", "seconds", {}, {}, {}};
  chart.x = {0, 10, false, {{0, "0"}, {10, "10"}}};
  chart.y = {1, 100, true, {{1, "1 µs"}, {100, "100 µs"}}};
  chart.series = {{"run A1", "A", 0, {{0, 1, "at 0 s", "1 µs"}, {10, 100, "at 10 s", "100 µs"}}},
                  {"run B1", "B", 9, {{5, 10, "at 5 s", "10 µs"}}}};
  return chart;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The plot is 1000 units wide and lies between 14 and 246 of 290 pixels. The line of A connects
/// its corners. The dot of B is its middle: 10 is half way from 1 to 100, and 130 from 246 to 14.
/// Texts of the left axis and of lines are 4 pixels below their point, those of the axis below 18.
TEST(Chart, LinesLieOnTheAxes) {
  EXPECT_EQ(
      draw(sample_chart()),
      R"(<figure class="chart"><figcaption>Throughput <span>responses a second</span></figcaption>)"
      R"(<svg class="plot" height="290" role="img" aria-label="Throughput, responses a second" )"
      R"(tabindex="0">)"
      R"(<line class="grid" x1="0" x2="100%" y1="246.0" y2="246.0"/>)"
      R"(<text x="-8" y="250.0" text-anchor="end">1 µs</text>)"
      R"(<line class="grid" x1="0" x2="100%" y1="14.0" y2="14.0"/>)"
      R"(<text x="-8" y="18.0" text-anchor="end">100 µs</text>)"
      R"(<line class="axis" x1="0.00%" x2="0.00%" y1="246" y2="250"/>)"
      R"(<text x="0.00%" y="264" text-anchor="middle">0</text>)"
      R"(<line class="axis" x1="100.00%" x2="100.00%" y1="246" y2="250"/>)"
      R"(<text x="100.00%" y="264" text-anchor="middle">10</text>)"
      R"(<line class="axis" x1="0" x2="100%" y1="246" y2="246"/>)"
      R"(<text x="50%" y="284" text-anchor="middle">seconds</text>)"
      R"(<line class="cursor" x1="0" x2="0" y1="14" y2="246"/>)"
      R"(<rect class="area" x="0" y="14" width="100%" height="232"/>)"
      R"(<svg class="lines" viewBox="0 0 1000 290" preserveAspectRatio="none" width="100%" )"
      R"(height="290">)"
      R"(<polyline class="c0" points="0.0,246.0 1000.0,14.0" data-name="run A1" )"
      R"(data-at="at 0 s|at 10 s" data-values="1 µs|100 µs"/>)"
      R"(<polyline class="c1 dashed" points="500.0,130.0" data-name="run B1" data-at="at 5 s" )"
      R"(data-values="10 µs"/></svg>)"
      R"(<circle class="c1 dashed dot" cx="50.00%" cy="130.0" r="3.5"/>)"
      R"(<text class="label c0" x="100.00%" dx="7" y="18.0">A</text>)"
      R"(<text class="label c1" x="100.00%" dx="7" y="134.0">B</text>)"
      "</svg><div class=\"tip\" hidden></div></figure>\n");
}

TEST(Chart, TextIsInPixelsAtPlacesInPercent) {
  const std::string svg = draw(sample_chart());
  EXPECT_NE(svg.find("<text x=\"100.00%\" y=\"264\" text-anchor=\"middle\">10</text>"),
            std::string::npos)
      << svg;
  // The only part that is scaled has no text.
  const std::size_t scaled = svg.find("viewBox");
  EXPECT_EQ(svg.find("viewBox", scaled + 1), std::string::npos);
  EXPECT_EQ(svg.substr(scaled, svg.find("</svg>", scaled) - scaled).find("<text"),
            std::string::npos);
}

TEST(Chart, TicksWithoutRoomHaveNoLabel) {
  Chart chart = sample_chart();
  chart.x.ticks.clear();
  for (int i = 0; i < 10; ++i) chart.x.ticks.push_back({double(i), "99.9999 %"});
  const std::string svg = draw(chart);
  EXPECT_EQ(occurrences(svg, "<text x="), 6U) << "two are of the other axis and one is the title\n"
                                              << svg;
  EXPECT_EQ(occurrences(svg, "<text class=\"where-wide\""), 2U) << svg;
  EXPECT_EQ(occurrences(svg, "class=\"axis\""), 11U) << "each has a mark";
}

/// 15 characters and the space between two labels take 103.5 pixels: once in the 206 of a narrow
/// plot, which labels one tick of four, and four times in the 464 of a wide one, which labels all.
TEST(Chart, ANarrowPlotHasFewerLabels) {
  Chart chart = sample_chart();
  chart.x.ticks.clear();
  for (int i = 0; i < 4; ++i) chart.x.ticks.push_back({double(i), std::string(15, '9')});
  const std::string svg = draw(chart);
  EXPECT_EQ(occurrences(svg, "<text class=\"where-wide\""), 3U) << svg;
  EXPECT_EQ(occurrences(svg, "y=\"264\""), 4U) << svg;
}

TEST(Chart, ALoneDotIsSeen) {
  EXPECT_EQ(occurrences(draw(sample_chart()), "<circle"), 1U);
}

TEST(Chart, StylesBeyondTheColoursAreDashed) {
  EXPECT_EQ(classes_of(1), "c1");
  EXPECT_EQ(classes_of(9), "c1 dashed");
  EXPECT_EQ(classes_of(17), "c1");
}

/// Draws a line that ends at each of these, given in pixels from the top of the drawing, with a
/// label, and returns the places of the labels without the 4 pixels by which a text is lower.
std::vector<double> labels_at(const std::vector<double>& ends, const std::string& same_name = {}) {
  Chart chart = sample_chart();
  chart.y = {0, 232, false, {}};
  chart.series.clear();
  for (const double y : ends) {
    const std::string name = same_name.empty() ? std::to_string(chart.series.size()) : same_name;
    chart.series.push_back({"run", name, 0, {{0, 246 - y, "", ""}}});
  }
  const std::string svg = draw(chart);
  const std::string before = "<text class=\"label c0\" x=\"0.00%\" dx=\"7\" y=\"";
  std::vector<double> labels;
  for (auto at = svg.find(before); at != std::string::npos; at = svg.find(before, at + 1)) {
    labels.push_back(std::stod(svg.substr(at + before.size())) - 4);
  }
  return labels;
}

TEST(Chart, LinesOfOneNameHaveOneLabelAtTheirMiddle) {
  EXPECT_EQ(labels_at({14, 246, 100}, "A"), (std::vector<double>{120}));
}

TEST(Chart, ALabelIsToTheRightOfAllLines) {
  Chart chart = sample_chart();
  chart.series[0].label = chart.series[1].label = "A";
  std::swap(chart.series[0], chart.series[1]);
  EXPECT_EQ(occurrences(draw(chart), "<text class=\"label c1\" x=\"100.00%\""), 1U);
}

TEST(Chart, LabelsDoNotLieOnEachOther) {
  using Places = std::vector<double>;
  EXPECT_EQ(labels_at({14, 130}), (Places{14, 130})) << "there is room";
  EXPECT_EQ(labels_at({130, 130}), (Places{122, 138})) << "each moves as far as the other";
  EXPECT_EQ(labels_at({145, 130}), (Places{129.5, 145.5}));
  EXPECT_EQ(labels_at({14, 14, 14}), (Places{14, 30, 46})) << "not above the drawing";
  EXPECT_EQ(labels_at({246, 246}), (Places{230, 246})) << "nor below it";
}

TEST(Chart, MoreThanTwelveLabelsAreNone) {
  std::vector<double> places;
  for (int i = 0; i < 12; ++i) places.push_back(14 + 16 * i);
  EXPECT_EQ(labels_at(std::vector<double>(12, 14)), places);
  EXPECT_TRUE(labels_at(std::vector<double>(13, 14)).empty());
}

}  // namespace
}  // namespace offload::report
