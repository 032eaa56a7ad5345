#pragma once

#include <fmt/core.h>

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

/// "A" to "Z", then "R27"; empty if there is only one result.
inline std::string letter_of(std::size_t result, std::size_t results) {
  if (results == 1) return {};
  return result < 26 ? std::string(1, static_cast<char>('A' + result))
                     : fmt::format("R{}", result + 1);
}

/// All runs of all results, in their order.
inline std::vector<ShownRun> list_runs(const std::vector<Result>& results) {
  std::vector<ShownRun> shown;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    for (std::size_t j = 0; j < result.runs.size(); ++j) {
      const std::string letter = letter_of(i, results.size());
      const bool numbered = letter.empty() || result.runs.size() > 1;
      const std::string number = numbered ? std::to_string(j + 1) : std::string();
      const char* const separator = letter.size() > 1 && numbered ? "." : "";
      shown.push_back({&result, &result.runs[j], fmt::format("{}{}{}", letter, separator, number),
                       letter.empty() ? number : letter, letter.empty() ? j : i});
    }
  }
  return shown;
}

}  // namespace offload::report
