#include "apps/report/page/chart.hpp"

#include <gtest/gtest.h>

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

TEST(Chart, LinesLieOnTheAxes) {
  const std::string svg = draw(sample_chart());
  // The corners of the drawing, and the middle of it: 10 is half way from 1 to 100.
  EXPECT_NE(svg.find("points=\"0.0,246.0 1000.0,14.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("points=\"500.0,130.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("data-name=\"run A1\" data-at=\"at 0 s|at 10 s\" data-values=\"1 µs|100 µs\""),
            std::string::npos)
      << svg;
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

TEST(Chart, ALoneDotIsSeen) {
  EXPECT_EQ(occurrences(draw(sample_chart()), "<circle"), 1U);
}

TEST(Chart, StylesBeyondTheColoursAreDashed) {
  EXPECT_EQ(classes_of(1), "c1");
  EXPECT_EQ(classes_of(9), "c1 dashed");
  EXPECT_EQ(classes_of(17), "c1");
}

TEST(Chart, LinesOfOneNameHaveOneLabel) {
  Chart chart = sample_chart();
  chart.series[1].label = "A";
  EXPECT_EQ(occurrences(draw(chart), "class=\"label"), 1U);
}

TEST(Chart, LabelsDoNotLieOnEachOther) {
  Chart chart = sample_chart();
  chart.series[1].points = {{10, 99, "", ""}};
  const std::string svg = draw(chart);
  EXPECT_NE(svg.find("y=\"18.0\">A<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("y=\"34.0\">B<"), std::string::npos) << svg;
}

TEST(Chart, TooManyLabelsAreNone) {
  Chart chart = sample_chart();
  for (int i = 0; i < 20; ++i) {
    chart.series.push_back(chart.series[0]);
    chart.series.back().label = std::to_string(i);
  }
  EXPECT_EQ(occurrences(draw(chart), "class=\"label"), 0U);
}

}  // namespace
}  // namespace offload::report
