#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// A figure by which results are compared.
struct Figure {
  enum class Kind : std::uint8_t { rate, latency, errors };
  Kind kind = Kind::latency;
  Statistic statistic = Statistic::p99;  ///< of a latency

  friend bool operator==(const Figure&, const Figure&) = default;
};

/// "rate", "p99.9", "errors", ...; nothing for any other text.
std::optional<Figure> figure_named(std::string_view name);
std::string name_of(Figure figure);

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
std::optional<Threshold> parse_threshold(std::string_view text);

}  // namespace offload::report
