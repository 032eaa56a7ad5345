#pragma once

#include <string>
#include <vector>

#include "apps/report/vocabulary.hpp"

namespace offload::report {

struct Merged {
  Result result;
  std::vector<std::string> warnings;  ///< one line each
};

/// One result of those of processes that ran at the same time, run by run. Throws Error
/// (invalid_value) of one line if they did not, or had different kinds of load.
Merged merge(const std::vector<Result>& results);

}  // namespace offload::report
