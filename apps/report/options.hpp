#pragma once

#include <string>
#include <variant>
#include <vector>

#include "apps/report/compare/threshold.hpp"
#include "cli/leave.hpp"

namespace offload::report {

/// The checked command line; the help texts (options.cpp) have the meaning of each option.
struct MergeOptions {
  std::vector<std::string> results;
  std::string output;
  std::string histogram_log;  ///< empty: none
};

struct HtmlOptions {
  std::vector<std::string> results;
  std::string output;
};

struct CompareOptions {
  std::string base;
  std::string candidate;  ///< NEW
  std::vector<Threshold> thresholds;
};

using Options = std::variant<MergeOptions, HtmlOptions, CompareOptions>;

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::report
