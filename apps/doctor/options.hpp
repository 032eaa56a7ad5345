#pragma once

#include <string>
#include <variant>

#include "apps/doctor/finding.hpp"
#include "cli/leave.hpp"

namespace offload::doctor {

/// The command line, checked.
struct Options {
  Role role = Role::any;
  bool as_json = false;
  std::string root;  ///< of the files that are read; empty: this machine's
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::doctor
