#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/leave.hpp"

namespace offload::ctl {

/// The command line, checked.
struct Options {
  std::vector<std::string> sockets;  ///< paths of the programs' --admin, at least one
  std::string command;               ///< the path after "/" that is asked for
  std::string argument;              ///< empty: none
  bool changes = false;              ///< it is a command, not a look
};

/// `run`: the folder with the sockets of services.
std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv,
                                                const std::string& run = "/run");

}  // namespace offload::ctl
