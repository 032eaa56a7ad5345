#pragma once

#include <string>

namespace offload::cli {

class CommandLine;

/// The levels and the format of the log.
struct LogOptions {
  std::string level = "info";  ///< --log-level
  std::string sdk_level;       ///< --sdk-log-level; empty: the same
  std::string format = "text";

  /// As core::start_log() takes them.
  [[nodiscard]] std::string levels() const {
    return sdk_level.empty() ? level : level + ",lib=" + sdk_level;
  }
};

/// -l, --log-level, --sdk-log-level and --log-format.
void add_log_options(CommandLine& line, LogOptions& options);

/// core::start_log() with them.
void start_log(const std::string& program, const LogOptions& options);

}  // namespace offload::cli
