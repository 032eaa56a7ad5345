#pragma once

#include <string>
#include <variant>

#include "cli/leave.hpp"

namespace offload::ctl {

/// The command line, checked.
struct Options {
  std::string socket;    ///< path of the program's --admin
  std::string command;   ///< the path after "/" that is asked for
  std::string argument;  ///< empty: none
  bool changes = false;  ///< it is a command, not a look
};

/// `run`: the folder with the sockets of services.
std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv,
                                                const std::string& run = "/run");

}  // namespace offload::ctl
