#pragma once

#include <array>
#include <string>

#include "apps/report/compare/side.hpp"
#include "apps/report/options.hpp"

namespace offload::report {

inline constexpr int kNothingFound = 0;
inline constexpr int kFound = 1;
inline constexpr int kCannotTell = 3;

/// The thresholds of a comparison without --fail.
inline constexpr std::array kDefaultThresholds = {"rate<0.9", "p50>1.1"};

struct ComparisonReport {
  std::string text;  ///< lines for people
  int status;        ///< kNothingFound, kFound or kCannotTell
};

/// Compares and says what was found. Errors first: with any in NEW nothing else counts.
ComparisonReport report_comparison(const CompareOptions& options, const Side& base,
                                   const Side& candidate);

}  // namespace offload::report
