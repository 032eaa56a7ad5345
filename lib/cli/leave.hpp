#pragma once

#include <cstddef>
#include <string>

/// Separate from options.hpp and its includes, for files that only pass it on.
namespace offload::cli {

/// The exit status for a wrong command line.
inline constexpr int kUsageError = 2;

/// The command line asks for no run, or is wrong.
struct Leave {
  int status;        ///< 0: the text is the answer (--help); 2: it says in one line what is wrong
  std::string text;  ///< without a newline at the end

  /// Returns the error without the name of the program before it.
  [[nodiscard]] std::string reason() const {
    const std::size_t name = text.find(": ");
    return name == std::string::npos ? text : text.substr(name + 2);
  }
};

/// For main: prints it where it belongs and returns its status.
int leave(const Leave& leave);

}  // namespace offload::cli
