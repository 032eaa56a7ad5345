#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "doca/argp/argp.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;
using nlohmann::json;

void add_flag(bool is_general, const std::string& name, const json& value,
              std::vector<JsonFlag>& flags) {
  if (value.is_null() || (value.is_boolean() && !value.get<bool>())) return;
  if (value.is_array()) {
    for (const json& each : value) add_flag(is_general, name, each, flags);
  } else if (value.is_string()) {
    flags.push_back({is_general, name, value.get<std::string>()});
  } else if (value.is_number_integer()) {
    flags.push_back({is_general, name, value.dump()});
  } else if (value.is_boolean()) {
    flags.push_back({is_general, name, {}});
  } else {
    throw Error(ErrorCode::invalid_value,
                "the value of '" + name + "' is not a string, an integer or a boolean");
  }
}

}  // namespace

std::vector<JsonFlag> read_json_flags(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::not_found, "cannot open " + path);
  const json root = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) throw Error(ErrorCode::invalid_value, path + " is not a JSON object");
  std::vector<JsonFlag> flags;
  for (const auto& [section, content] : root.items()) {
    const bool is_general = section == "doca_general_flags";
    if (!is_general && section != "doca_program_flags") continue;  // a program's own
    if (!content.is_object()) {
      throw Error(ErrorCode::invalid_value,
                  fmt::format("{}: '{}' is not an object", path, section));
    }
    for (const auto& [name, value] : content.items()) add_flag(is_general, name, value, flags);
  }
  return flags;
}

}  // namespace offload::doca
