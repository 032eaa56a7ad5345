#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "apps/report/vocabulary.hpp"
#include "core/units.hpp"

namespace offload::report {

inline constexpr double kMostBound = 1e9;

inline std::string without_blanks(std::string_view text) {
  std::string rest(text);
  rest.erase(std::remove(rest.begin(), rest.end(), ' '), rest.end());
  return rest;
}

/// "p99.9", where the format has "p99_9".
inline std::string dotted(std::string name) {
  std::ranges::replace(name, '_', '.');
  return name;
}

/// A figure by which results are compared.
struct Figure {
  enum class Kind : std::uint8_t { rate, latency, errors };
  Kind kind = Kind::latency;
  Statistic statistic = Statistic::p99;  ///< of a latency

  friend bool operator==(const Figure&, const Figure&) = default;
};

/// "rate", "p99.9", "errors", ...; nothing for any other text.
inline std::optional<Figure> figure_named(std::string_view name) {
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
inline std::string name_of(Figure figure) {
  if (figure.kind == Figure::Kind::rate) return "rate";
  if (figure.kind == Figure::Kind::errors) return "errors";
  return dotted(kStatisticNames[static_cast<std::size_t>(figure.statistic)]);
}

/// A condition that makes a comparison fail: the ratio of NEW to BASE, or the errors of NEW, above
/// or below a bound.
struct Threshold {
  Figure figure;
  bool above = true;  ///< '>'
  double bound = 1;
  std::string text;  ///< as it was written, without blanks
};

/// Parses "p99>1.2": FIGURE, '>' or '<', a number from 0 to 1e9, blanks between them; nothing for
/// any other text. A ratio's bound is above 0.
inline std::optional<Threshold> parse_threshold(std::string_view text) {
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
