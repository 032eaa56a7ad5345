#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"

namespace offload::core {

/// Sends the log to standard error as "time level program: text". `level`: one of log_levels().
/// Nobody who logs waits for standard error: a thread of the log's own writes to it, and what it
/// cannot write in time is dropped and counted (LogQueue). Throws Error.
void start_log(const std::string& program, const std::string& level);

/// What is reported from now on. `level`: one of log_levels(). Any thread.
void set_log_level(const std::string& level);

/// Waits until the lines so far are written, for at most a second; also called at exit(). For those
/// who are about to end the process in another way.
void flush_log() noexcept;

/// Writes "program: text" to standard error behind the log's lines, and as they are written, also
/// if no log was started: for what a program says whatever its log level.
void print_error(const std::string& program, std::string_view text) noexcept;

/// The levels that start_log takes: trace, debug, info, warning, error, off.
const std::vector<std::string>& log_levels();

enum class LogLevel : std::uint8_t { debug = 1, info, warning, error, critical };

/// Writes a line to the log if the log reports its level. A line that cannot be formatted is
/// dropped. Any thread.
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) noexcept;

/// write_log() with the arguments checked against the format at compile time. spdlog's own
/// functions would make each source that calls one compile all of fmt's formatting, which takes
/// longer than the rest of a typical source.
template <class... Arguments>
void log(LogLevel level, fmt::format_string<Arguments...> format,
         Arguments&&... arguments) noexcept {
  write_log(level, format, fmt::make_format_args(arguments...));
}

/// log() at one level, as a function object: log_info("{} clients", count).
template <LogLevel kLevel>
struct LogAt {
  template <class... Arguments>
  void operator()(fmt::format_string<Arguments...> format,
                  Arguments&&... arguments) const noexcept {
    write_log(kLevel, format, fmt::make_format_args(arguments...));
  }
};
inline constexpr LogAt<LogLevel::debug> log_debug;
inline constexpr LogAt<LogLevel::info> log_info;
inline constexpr LogAt<LogLevel::warning> log_warning;
inline constexpr LogAt<LogLevel::error> log_error;
inline constexpr LogAt<LogLevel::critical> log_critical;

/// A limit of one message a second for one kind of message, so that a hostile client cannot fill a
/// disk. One thread: each thread has its own.
class RateLimit {
 public:
  /// Whether to log now. If so, suppressed() is the number of messages dropped since the last one.
  bool allow(TimePoint now) noexcept {
    if (now - last_ < std::chrono::seconds(1) && last_ != TimePoint{}) {
      ++held_back_;
      return false;
    }
    last_ = now;
    suppressed_ = held_back_;
    held_back_ = 0;
    return true;
  }
  [[nodiscard]] std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  TimePoint last_{};
  std::uint64_t held_back_ = 0;
  std::uint64_t suppressed_ = 0;
};

}  // namespace offload::core
