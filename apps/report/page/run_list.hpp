#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// A run as a page shows it. It points into the results.
struct ShownRun {
  const Result* result;
  const Run* run;
  std::string name;       ///< "B2": the second run of the second result; "1" with one result
  std::string label;      ///< at its lines: "B", or its name with one result
  std::size_t style = 0;  ///< of its lines: one of each result, or of each run of a single one
};

/// All runs of all results, in their order.
std::vector<ShownRun> list_runs(const std::vector<Result>& results);

/// "A" to "Z", then "R27"; empty if there is only one result.
std::string letter_of(std::size_t result, std::size_t results);

}  // namespace offload::report
