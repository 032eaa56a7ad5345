#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace offload::report {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string at;     ///< where, as the hover text has it: "12.5 s"
  std::string value;  ///< "83.1 µs"
};

/// One line of a chart. Its texts are HTML already.
struct Series {
  std::string name;   ///< for the hover text
  std::string label;  ///< short, at the line's end, once for lines that share it; empty: none
  std::size_t style = 0;
  std::vector<ChartPoint> points;  ///< from left to right; none: no line
};

struct Tick {
  double value = 0;
  std::string text;
};

struct Axis {
  double low = 0;  ///< of a logarithmic one above 0
  double high = 1;
  bool logarithmic = false;
  std::vector<Tick> ticks;
};

struct Chart {
  std::string title;
  std::string unit;  ///< behind the title: "µs, logarithmic"
  std::string x_title;
  Axis x;
  Axis y;
  std::vector<Series> series;
};

/// Number of colours; styles beyond it are the same ones dashed, then again.
inline constexpr std::size_t kColours = 8;
/// "c3", "c3 dashed": the classes of a line.
std::string classes_of(std::size_t style);

/// The chart as a figure with an SVG, which page.html's style and script serve: all numbers are in
/// it, so that it reads without the script too.
std::string draw(const Chart& chart);

}  // namespace offload::report
