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
  EXPECT_NE(svg.find("points=\"62.0,246.0 646.0,14.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("points=\"354.0,130.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("data-name=\"run A1\" data-at=\"at 0 s|at 10 s\" data-values=\"1 µs|100 µs\""),
            std::string::npos)
      << svg;
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
  EXPECT_NE(svg.find("y=\"31.0\">B<"), std::string::npos) << svg;
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
