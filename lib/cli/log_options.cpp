#include "cli/log_options.hpp"

#include <fmt/core.h>

#include <optional>

#include "cli/options.hpp"
#include "core/log.hpp"

namespace offload::cli {

void add_log_options(CommandLine& line, LogOptions& options) {
  const auto read = [](const std::string& text) {
    return core::log_levels_are_right(text) ? std::optional(text) : std::nullopt;
  };
  const std::string names = listed(core::log_levels());
  add(line, "-l,--log-level LEVEL", options.level, read,
      fmt::format("one of {}, or from 10 to 70, with ,COMPONENT=LEVEL for components", names),
      fmt::format("Set the log level: {}. A component (a folder of lib or apps) may have another, "
                  "as in info,comch=debug",
                  names));
  add(line, "--sdk-log-level LEVEL", options.sdk_level, read, fmt::format("one of {}", names),
      "Set the library's log level; short for --log-level LEVEL,lib=LEVEL");
  add_choice(line, "--log-format", options.format, {"text", "json"},
             "Write log lines as text, or as one JSON object each");
}

void start_log(const std::string& program, const LogOptions& options) {
  core::start_log(program, options.levels(),
                  options.format == "json" ? core::LogFormat::json : core::LogFormat::text);
}

}  // namespace offload::cli
