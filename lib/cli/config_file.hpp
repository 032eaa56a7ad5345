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

}  // namespace offload::cli
