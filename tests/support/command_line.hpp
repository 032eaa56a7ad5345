#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "cli/leave.hpp"

namespace offload::support {

/// A program's command line, without its name: what parse_options(argc, argv) makes of it.
template <auto parse_options>
auto parse(std::vector<const char*> arguments, const char* program) {
  arguments.insert(arguments.begin(), program);
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

/// The options of a command line that has to be right.
template <class Options>
Options accepted(const std::variant<Options, cli::Leave>& result) {
  const auto* const leave = std::get_if<cli::Leave>(&result);
  EXPECT_EQ(leave, nullptr) << leave->text;
  return leave == nullptr ? std::get<Options>(result) : Options{};
}

}  // namespace offload::support
