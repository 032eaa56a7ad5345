#include "apps/report/compare/threshold.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace offload::report {
namespace {

constexpr double kMostBound = 1e9;

std::string without_blanks(std::string_view text) {
  std::string rest(text);
  rest.erase(std::remove(rest.begin(), rest.end(), ' '), rest.end());
  return rest;
}

/// "p99.9", where the format has "p99_9".
std::string dotted(std::string name) {
  std::ranges::replace(name, '_', '.');
  return name;
}

}  // namespace

std::optional<Figure> figure_named(std::string_view name) {
  if (name == "rate") return Figure{Figure::Kind::rate};
  if (name == "errors") return Figure{Figure::Kind::errors};
  for (std::size_t i = 0; i < kStatisticNames.size(); ++i) {
    const auto statistic = static_cast<Statistic>(i);
    // One request is enough for the shortest time, and p99.999 takes a million of them a run.
    if (statistic == Statistic::min || statistic == Statistic::p99_999) continue;
    if (name == dotted(kStatisticNames[i])) return Figure{Figure::Kind::latency, statistic};
  }
  return std::nullopt;
}

std::string name_of(Figure figure) {
  if (figure.kind == Figure::Kind::rate) return "rate";
  if (figure.kind == Figure::Kind::errors) return "errors";
  return dotted(kStatisticNames[static_cast<std::size_t>(figure.statistic)]);
}

std::optional<Threshold> parse_threshold(std::string_view text) {
  Threshold threshold;
  threshold.text = without_blanks(text);
  const std::size_t at = threshold.text.find_first_of("<>");
  if (at == std::string::npos) return std::nullopt;
  const auto figure = figure_named(std::string_view(threshold.text).substr(0, at));
  if (!figure) return std::nullopt;
  threshold.figure = *figure;
  threshold.above = threshold.text[at] == '>';
  threshold.bound = core::parse_number<double>(threshold.text.substr(at + 1)).value_or(-1);
  const bool in_range = threshold.bound >= 0 && threshold.bound <= kMostBound;
  const bool is_ratio = figure->kind != Figure::Kind::errors;
  if (!in_range || (is_ratio && threshold.bound == 0)) return std::nullopt;
  return threshold;
}

}  // namespace offload::report
