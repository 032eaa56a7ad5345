#pragma once

#include <string>
#include <vector>

#include "cli/config_file.hpp"

namespace offload::cli {

class CommandLine;

/// The options given on the command line and in the file; an option that was not given has its
/// default and is not included.
using Settings = std::vector<Setting>;

/// The command line of a program with a configuration file.
struct Configuration {
  /// For main: to read it again at SIGHUP.
  int argument_count = 0;
  const char* const* arguments = nullptr;
  bool check = false;  ///< --check-config
  bool print = false;  ///< --print-config
  Settings settings{};

  /// The settings of `line`, after its parse(), in the order of its options.
  void take(const CommandLine& line);
  /// For the log: names, values and who said them.
  [[nodiscard]] std::string to_string() const;
};

/// --config, --check-config and --print-config, before CommandLine::parse(), which then takes what
/// the file says as if the command line said it, which wins: an option that excludes one of the
/// command line's is not taken from the file.
void add_configuration(CommandLine& line, Configuration& configuration);

/// Returns the text of --print-config: each option of `line`, after its parse(), under its
/// description, as TOML; commented out if it has its default.
std::string configuration_text(const CommandLine& line);

/// The names of all settings whose values are not equal in both.
std::vector<std::string> changed(const Settings& before, const Settings& now);

/// Warns of those that have changed, but for `may_change`: they need a restart.
void warn_of_restart(const Settings& before, const Settings& now,
                     const std::vector<std::string>& may_change);

}  // namespace offload::cli
