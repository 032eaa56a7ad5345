#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

/// BASE or NEW of a comparison: results and all their runs.
struct Side {
  std::string name;  ///< as it was given
  std::vector<Result> results;

  /// In the order in which they began; they point into `results`.
  [[nodiscard]] std::vector<const Run*> runs() const;
  /// Errors of all kinds, and requests that were not answered.
  [[nodiscard]] std::uint64_t error_count() const;
};

/// Reads the side that `text` names: a file, several as "a,b,c", or a folder, of which it takes all
/// files *.json. Throws Error.
Side read_side(const std::string& text);

}  // namespace offload::report
