#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doca/include/doca_argp.h"

/// An option of a program.
struct doca_argp_param {
  std::string short_name;
  std::string long_name;
  std::string arguments;
  std::string description;
  doca_argp_param_cb_t callback = nullptr;
  doca_argp_type type = DOCA_ARGP_TYPE_UNKNOWN;
  bool is_mandatory = false;
  bool may_repeat = false;
  bool was_given = false;
};

namespace offload::doca {

/// An option as a JSON file has it.
struct JsonFlag {
  bool is_general = false;  ///< of the library, not of the program
  std::string name;
  std::string value;  ///< as on a command line; empty for a boolean that is true
};

/// Reads the options of a JSON file. A boolean that is false, and an option whose value is null, is
/// left out. Throws Error: not_found, invalid_value.
std::vector<JsonFlag> read_json_flags(const std::string& path);

}  // namespace offload::doca
