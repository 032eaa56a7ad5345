#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/log.hpp"

namespace offload::core {

/// Which lines a log reports, by component.
class LogLevels {
 public:
  /// LogLevel's values; what is above all of them reports nothing.
  using Level = int;

  /// As log_levels_are_right() has it; nothing for what is none of that.
  static std::optional<LogLevels> parse(std::string_view text);

  /// `component`: as component_of() has it.
  [[nodiscard]] Level of(std::string_view component) const;
  /// Of all components, what reports the most.
  [[nodiscard]] Level lowest() const;

 private:
  Level common_ = static_cast<Level>(LogLevel::info);
  std::map<std::string, Level, std::less<>> own_;
};

}  // namespace offload::core
