#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/log.hpp"

namespace offload::core {

/// The lines that a log reports, by component.
class LogLevels {
 public:
  /// LogLevel's values; what is above all of them reports nothing.
  using Level = int;

  /// Parses levels as in log_levels_are_right(); nothing for invalid text.
  static std::optional<LogLevels> parse(std::string_view text);

  /// `component`: as component_of() has it.
  [[nodiscard]] Level of(std::string_view component) const;
  /// Returns the most verbose level of all components.
  [[nodiscard]] Level lowest() const;

 private:
  Level common_ = static_cast<Level>(LogLevel::info);
  std::map<std::string, Level, std::less<>> own_;
};

}  // namespace offload::core
