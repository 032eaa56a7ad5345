#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "cli/leave.hpp"
#include "core/escape.hpp"

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

/// A command line that is refused, without the program's name.
struct BadCase {
  std::vector<const char*> arguments;
  const char* says;  ///< part of the message
};

/// The command line: it names the test in lists and reports.
inline std::ostream& operator<<(std::ostream& out, const BadCase& bad) {
  for (const char* argument : bad.arguments) {
    out << (argument == bad.arguments.front() ? "" : " ")
        << core::escaped(*argument == '\0' ? "''" : argument);
  }
  return out << (bad.arguments.empty() ? "(nothing)" : "");
}

/// Expects that one line of text, which begins with `program` and contains `says`, refuses a
/// command line.
inline void expect_refused(const cli::Leave& leave, const std::string& program,
                           const std::string& says) {
  EXPECT_EQ(leave.status, 2);
  EXPECT_EQ(leave.text.rfind(program + ": ", 0), 0U) << leave.text;
  EXPECT_NE(leave.text.find(says), std::string::npos) << leave.text;
  EXPECT_EQ(leave.text.find('\n'), std::string::npos) << leave.text;
}
template <class Options>
void expect_refused(const std::variant<Options, cli::Leave>& result, const std::string& program,
                    const std::string& says) {
  const auto* const leave = std::get_if<cli::Leave>(&result);
  ASSERT_NE(leave, nullptr) << says;
  expect_refused(*leave, program, says);
}

}  // namespace offload::support
