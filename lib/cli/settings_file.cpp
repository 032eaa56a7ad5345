#include "cli/settings_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/log.hpp"

namespace offload::cli {
namespace {

/// A longer file is another file.
constexpr std::uintmax_t kMostBytes = 64U << 10;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw core::Error(core::ErrorCode::invalid_value, fmt::format("'{}': {}", path, why));
}

nlohmann::json parse(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);  // of a regular file, no pipe
  if (error) refuse(path, "cannot be read: " + error.message());
  if (bytes > kMostBytes) refuse(path, fmt::format("is longer than {} bytes", kMostBytes));
  std::ifstream file(path);
  if (!file) core::throw_errno("cannot read '" + path + "'");
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& wrong) {
    refuse(path, "is no JSON: " + core::escaped(wrong.what()));
  }
}

}  // namespace

void SettingsFile::add(const std::string& name, Take take, const std::string& allowed,
                       Apply restore) {
  settings_.push_back({name, std::move(take), allowed, std::move(restore)});
}

void SettingsFile::add_log_level(std::string& level) {
  const auto set = [&level](const std::string& text) {
    return Apply([&level, text] {
      level = text;
      core::set_log_level(text);
    });
  };
  const auto take = [set](const std::string& text) {
    const auto& levels = core::log_levels();
    const bool known = std::find(levels.begin(), levels.end(), text) != levels.end();
    return known ? std::optional(set(text)) : std::nullopt;
  };
  add("log-level", take, "one of " + listed(core::log_levels()), set(level));
}

void SettingsFile::add_time(const std::string& name, core::Duration& value,
                            core::Duration shortest) {
  const auto set = [&value](core::Duration time) {
    return Apply([&value, time] { value = time; });
  };
  const auto take = [set, shortest](const std::string& text) {
    const auto time = read_time(text, shortest);
    return time ? std::optional(set(*time)) : std::nullopt;
  };
  add(name, take, "a time such as 2s or 500ms", set(value));
}

SettingsFile::Apply SettingsFile::read() const {
  if (path_.empty()) return [] {};
  const nlohmann::json values = parse(path_);
  if (!values.is_object()) refuse(path_, "is no JSON object");
  std::vector<Apply> changes;
  for (const Setting& setting : settings_) changes.push_back(setting.restore);
  for (const auto& item : values.items()) {
    const std::string& name = item.key();
    const nlohmann::json& value = item.value();
    const auto setting = std::find_if(settings_.begin(), settings_.end(),
                                      [&](const Setting& each) { return each.name == name; });
    if (setting == settings_.end()) {
      std::vector<std::string> names;
      for (const Setting& each : settings_) names.push_back(each.name);
      refuse(path_, fmt::format("'{}' is not one of {}", core::escaped(name), listed(names)));
    }
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    auto change = setting->take(text);
    if (!change) {
      refuse(path_, fmt::format("{}: '{}' is not {}", name, core::escaped(text), setting->allowed));
    }
    changes.push_back(*std::move(change));
  }
  return [changes = std::move(changes)] {
    for (const Apply& change : changes) change();
  };
}

}  // namespace offload::cli
