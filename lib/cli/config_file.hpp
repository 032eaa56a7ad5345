#pragma once

#include <string>
#include <vector>

namespace offload::cli {

/// One setting of a configuration file.
struct Setting {
  std::string name;                 ///< an option's long name, without its dashes
  std::vector<std::string> values;  ///< as the command line would have them
  std::string place;                ///< "FILE:LINE:COLUMN"
};

/// Reads the settings of a file, in its order: TOML of one level, or JSON, which begins with '{'.
/// JSON may have // comments and the two objects of the reference applications' files,
/// doca_general_flags and doca_program_flags, whose members are settings as well. The caller must
/// check the names of settings. Throws Error, with one line that begins with the place.
std::vector<Setting> read_config(const std::string& path);

/// A table of a file of several: [name], or one of [[name]].
struct SettingTable {
  std::string name;  ///< empty: the settings before the first table
  std::vector<Setting> settings;
  std::string place;
};

/// Reads a TOML file of tables, in its order, beginning with the settings before the first one. A
/// table has no tables. Otherwise as read_config().
std::vector<SettingTable> read_config_tables(const std::string& path);

}  // namespace offload::cli
