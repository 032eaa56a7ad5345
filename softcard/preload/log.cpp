#include "core/log.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace offload::core {

/// Warnings and errors go to standard error: the program that has the device starts no log.
void write_log(LogLevel level, std::string_view, fmt::string_view format,
               fmt::format_args arguments) noexcept {
  if (level < LogLevel::warning) return;
  try {
    const std::string text = fmt::vformat(format, arguments);
    std::fprintf(stderr, "softcard: %s\n", text.c_str());
  } catch (...) {
    std::fputs("softcard: a line of the log cannot be formatted\n", stderr);
  }
}

}  // namespace offload::core
