#pragma once

#include <string>

/// Apart from options.hpp, and without what that includes, for those who only pass it on.
namespace offload::cli {

/// The exit status for a wrong command line.
inline constexpr int kUsageError = 2;

/// The command line asks for no run, or is wrong.
struct Leave {
  int status;        ///< 0: the text is the answer (--help); 2: it says in one line what is wrong
  std::string text;  ///< without a newline at the end
};

/// For main: prints it where it belongs and returns its status.
int leave(const Leave& leave);

}  // namespace offload::cli
