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
  Settings defaults{};  ///< of all options that a file may have; set by take(), as `settings` are

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

/// Returns "NAME OLD -> NEW" for each of `may_change` that is different.
std::vector<std::string> described_changes(const Configuration& before, const Configuration& now,
                                           const std::vector<std::string>& may_change);

/// Applies what was reread: `configuration` has the settings of `now` that are in `may_change`, and
/// its own otherwise. Warns of the others that have changed: they need a restart.
void take_changes(Configuration& configuration, const Configuration& now,
                  const std::vector<std::string>& may_change);

}  // namespace offload::cli
