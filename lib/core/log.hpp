#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/clock.hpp"

namespace offload::core {

/// The format of a line: "time level program: text", or a JSON object.
enum class LogFormat : std::uint8_t { text, json };

/// Sends the log to standard error. `levels`: as for log_levels_are_right(). No caller waits for
/// standard error: a separate thread writes to it, and drops and counts lines that it cannot write
/// in time (LogQueue). Throws Error.
void start_log(const std::string& program, const std::string& levels,
               LogFormat format = LogFormat::text);

/// Sets the levels from now on. `levels`: as for start_log(). Any thread.
void set_log_level(const std::string& levels);

/// Returns whether `text` is a level, or several separated by commas: one for all, and NAME=LEVEL
/// for each component that has its own. A level is one of log_levels(), or the number of it that
/// the reference's logger has (10 off, 20 critical, then error, warning, info, debug, 70 trace). A
/// component is a folder of lib/ or apps/; "lib" is all of lib/ that has no own. The last one
/// counts.
[[nodiscard]] bool log_levels_are_right(std::string_view text) noexcept;

/// Waits until the lines so far are written, for at most a second; also called at exit(). For those
/// who are about to end the process in another way.
void flush_log() noexcept;

/// Writes "program: text", or an object of a log in JSON, to standard error, after the lines of the
/// log and in the same way, even if no log was started: for messages of any log level.
void print_error(const std::string& program, std::string_view text) noexcept;

/// The names of levels: trace, debug, info, warning, error, critical, off.
const std::vector<std::string>& log_levels();

enum class LogLevel : std::uint8_t { debug = 1, info, warning, error, critical };

/// The folder of lib/ or apps/ that a source is in, with "lib/" before it for the former; "other".
consteval std::string_view component_of(std::string_view file) {
  for (const std::string_view root : {std::string_view("lib/"), std::string_view("apps/")}) {
    const std::size_t at = file.rfind(root);
    if (at == std::string_view::npos || (at != 0 && file[at - 1] != '/')) continue;
    const std::size_t begin = at + root.size();
    const std::size_t end = file.find('/', begin);
    if (end == std::string_view::npos) continue;
    return root == "lib/" ? file.substr(at, end - at) : file.substr(begin, end - begin);
  }
  return "other";
}

/// Writes a line to the log if the log reports its level for its component, as component_of() has
/// it. A line that cannot be formatted is dropped. Any thread.
void write_log(LogLevel level, std::string_view component, fmt::string_view format,
               fmt::format_args arguments) noexcept;

/// A format that fits its arguments, checked at compile time, and where it stands.
template <class... Arguments>
struct LogText {
  template <class Text>
  consteval LogText(const Text& text, const char* file = __builtin_FILE())  // NOLINT: a conversion
      : format(text), component(component_of(file)) {}

  fmt::format_string<Arguments...> format;
  std::string_view component;
};

/// write_log() for texts and arguments that fit. spdlog's own functions would make each source that
/// calls one compile all of fmt's formatting, which takes longer than the rest of a typical source.
template <class... Arguments>
void log(LogLevel level, LogText<std::type_identity_t<Arguments>...> text,
         Arguments&&... arguments) noexcept {
  write_log(level, text.component, text.format, fmt::make_format_args(arguments...));
}

/// log() at one level, as a function object: log_info("{} clients", count).
template <LogLevel kLevel>
struct LogAt {
  template <class... Arguments>
  void operator()(LogText<std::type_identity_t<Arguments>...> text,
                  Arguments&&... arguments) const noexcept {
    write_log(kLevel, text.component, text.format, fmt::make_format_args(arguments...));
  }
};
inline constexpr LogAt<LogLevel::debug> log_debug;
inline constexpr LogAt<LogLevel::info> log_info;
inline constexpr LogAt<LogLevel::warning> log_warning;
inline constexpr LogAt<LogLevel::error> log_error;
inline constexpr LogAt<LogLevel::critical> log_critical;

/// A limit of messages of one kind in a second, so that a hostile client cannot fill a disk. One
/// thread: each thread has its own.
class RateLimit {
 public:
  /// `most`: messages of a second, one at least.
  explicit RateLimit(std::uint32_t most = 1) noexcept : most_(most) {}

  /// Returns whether to log now. If so, suppressed() is the number of messages that were dropped
  /// since the last one that was logged.
  bool allow(TimePoint now) noexcept {
    const bool begins = now - began_ >= std::chrono::seconds(1) || began_ == TimePoint{};
    if (!begins && count_ == most_) {
      ++held_back_;
      return false;
    }
    if (begins) {
      began_ = now;
      count_ = 0;
    }
    ++count_;
    suppressed_ = held_back_;
    held_back_ = 0;
    return true;
  }
  [[nodiscard]] std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  std::uint32_t most_;
  std::uint32_t count_ = 0;  ///< logged since began_
  TimePoint began_{};
  std::uint64_t held_back_ = 0;
  std::uint64_t suppressed_ = 0;
};

}  // namespace offload::core
