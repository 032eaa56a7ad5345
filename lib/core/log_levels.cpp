#include "core/log_levels.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace offload::core {
namespace {

constexpr LogLevels::Level kTrace = 0;
constexpr LogLevels::Level kOff = static_cast<LogLevels::Level>(LogLevel::critical) + 1;
constexpr std::string_view kLibrary = "lib/";

struct NamedLevel {
  std::string_view name;
  std::string_view number;  ///< in the reference's logger
  LogLevels::Level level;
};

constexpr std::array<NamedLevel, 7> kLevels{{
    {"trace", "70", kTrace},
    {"debug", "60", static_cast<LogLevels::Level>(LogLevel::debug)},
    {"info", "50", static_cast<LogLevels::Level>(LogLevel::info)},
    {"warning", "40", static_cast<LogLevels::Level>(LogLevel::warning)},
    {"error", "30", static_cast<LogLevels::Level>(LogLevel::error)},
    {"critical", "20", static_cast<LogLevels::Level>(LogLevel::critical)},
    {"off", "10", kOff},
}};

std::optional<LogLevels::Level> level_of(std::string_view text) {
  const auto* const found = std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& each) {
    return each.name == text || each.number == text;
  });
  return found == kLevels.end() ? std::nullopt : std::optional(found->level);
}

bool is_component(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const auto& each : kLevels) made.emplace_back(each.name);
    return made;
  }();
  return names;
}

bool log_levels_are_right(std::string_view text) noexcept {
  try {
    return LogLevels::parse(text).has_value();
  } catch (...) {
    return false;
  }
}

std::optional<LogLevels> LogLevels::parse(std::string_view text) {
  LogLevels levels;
  bool has_common = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      const auto level = level_of(part);
      if (!level || std::exchange(has_common, true)) return std::nullopt;
      levels.common_ = *level;
      continue;
    }
    const std::string_view name = part.substr(0, equals);
    const auto level = level_of(part.substr(equals + 1));
    if (!is_component(name) || !level) return std::nullopt;
    levels.own_.insert_or_assign(std::string(name), *level);
  }
  return levels;
}

LogLevels::Level LogLevels::of(std::string_view component) const {
  const bool in_library = component.starts_with(kLibrary);
  if (in_library) component.remove_prefix(kLibrary.size());
  if (const auto own = own_.find(component); own != own_.end()) return own->second;
  if (const auto library = own_.find("lib"); in_library && library != own_.end()) {
    return library->second;
  }
  return common_;
}

LogLevels::Level LogLevels::lowest() const {
  Level lowest = common_;
  for (const auto& each : own_) lowest = std::min(lowest, each.second);
  return lowest;
}

}  // namespace offload::core
