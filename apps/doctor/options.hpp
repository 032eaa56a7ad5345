#pragma once

#include <string>
#include <variant>
#include <vector>

#include "apps/doctor/finding.hpp"
#include "cli/leave.hpp"

namespace offload::doctor {

/// The command line, checked.
struct Options {
  MachineRole role = MachineRole::any;
  bool as_json = false;
  std::vector<std::string> pair;  ///< a GPU and a card; empty: the machine as a whole
  std::string root;               ///< of the files that are read; empty: this machine's
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::doctor
