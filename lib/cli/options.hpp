#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/leave.hpp"
#include "core/clock.hpp"
#include "core/units.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// The command lines of all programs: an error is one line that says what is allowed. CLI11 parses
/// them and is hidden, because a source that includes it takes ten seconds longer to compile.
namespace offload::cli {

/// The options of a program's command line. One thread.
class CommandLine {
 public:
  CommandLine(std::string program, const std::string& description, const std::string& footer = {});
  CommandLine& operator=(CommandLine&&) = delete;
  ~CommandLine();

  /// Takes --help and --version as well. Nothing: go on. Once.
  std::optional<Leave> parse(int argc, const char* const* argv);
  /// The heading in the help under which the options come that are added from now on.
  void begin_group(const std::string& name);
  /// Returns the result of parse() for a command line with an error. `wrong`: the error, one line.
  [[nodiscard]] Leave refuse(const std::string& wrong) const;
  /// Returns whether the option was given, after parse(). `option`: its long name.
  [[nodiscard]] bool has(const std::string& option) const;

  /// Adds a sub-command with its own options, owned by this object; the user must give one of them.
  CommandLine& add_command(const std::string& name, const std::string& description,
                           const std::string& footer = {});
  /// Returns whether this sub-command was given, after its parent's parse().
  [[nodiscard]] bool said() const;

  [[nodiscard]] CLI::App& native() const noexcept { return *app_; }

 private:
  CommandLine(std::string program, std::shared_ptr<CLI::App> app);

  std::string program_;
  std::shared_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
};

/// One option of a command line that outlives it; each function returns the same one.
class Option {
 public:
  explicit Option(CLI::Option* native) noexcept : native_(native) {}

  /// Sets the default that the help shows.
  Option default_str(const std::string& text) const;
  Option required() const;
  /// For add_values(): takes one value each time it is given, so that positional ones may follow.
  Option one_each() const;
  Option needs(Option other) const;
  Option excludes(Option other) const;
  /// `wrong`: what is wrong about a value, empty if nothing.
  Option check(std::function<std::string(const std::string&)> wrong) const;

 private:
  CLI::Option* native_;
};

/// Takes a text into its option's value, or refuses it.
using Take = std::function<bool(const std::string& text)>;

/// Defines an option by `take`: if that refuses a text, `allowed` completes the sentence
/// "--name: '...' is not ...". `names`: the long one last, and the name of the value, such as
/// "-o,--output FILE".
Option add_value(CommandLine& line, const std::string& names, Take take, const std::string& allowed,
                 const std::string& description);
/// The same for one that may be said several times.
Option add_values(CommandLine& line, const std::string& names, Take take,
                  const std::string& allowed, const std::string& description);

/// `names`, with this name of the value if they have none.
std::string with_value_name(const std::string& names, const char* value);
std::string shown(core::Duration time);

/// The default that the help shows for a value; empty for one that has no text.
template <class Value>
std::string default_of(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) return value;
  if constexpr (std::is_same_v<Value, core::Duration>) return shown(value);
  if constexpr (std::is_integral_v<Value>) return std::to_string(value);
  return {};
}

/// add_value() for one that `read` turns into a value, or refuses by returning nothing. The default
/// shown is what `value` holds.
template <class Value, class Read>
Option add(CommandLine& line, const std::string& names, Value& value, Read read,
           const std::string& allowed, const std::string& description) {
  const auto take = [&value, read](const std::string& text) {
    const auto result = read(text);
    if (result) value = *result;
    return result.has_value();
  };
  return add_value(line, names, take, allowed, description).default_str(default_of(value));
}

/// The same for one that may be said several times: each value that `read` makes is appended.
template <class Value, class Read>
Option add_each(CommandLine& line, const std::string& names, std::vector<Value>& values, Read read,
                const std::string& allowed, const std::string& description) {
  const auto take = [&values, read](const std::string& text) {
    const std::optional<Value> value = read(text);
    if (value) values.push_back(*value);
    return value.has_value();
  };
  return add_values(line, names, take, allowed, description);
}

/// Any text; the default shown is what `value` holds.
Option add_text(CommandLine& line, const std::string& names, std::string& value,
                const std::string& description);

/// Sets `value`.
Option add_flag(CommandLine& line, const std::string& names, bool& value,
                const std::string& description);

/// Clears `value`, as --no-... does.
Option add_clearing_flag(CommandLine& line, const std::string& names, bool& value,
                         const std::string& description);

/// A whole number of `lowest` to `highest`.
template <class Integer>
Option add_integer(CommandLine& line, const std::string& names, Integer& value, Integer lowest,
                   Integer highest, const std::string& description) {
  const auto read = [lowest, highest](const std::string& text) {
    const auto number = core::parse_number<Integer>(text);
    return number && *number >= lowest && *number <= highest ? number : std::nullopt;
  };
  return add(line, with_value_name(names, "COUNT"), value, read,
             fmt::format("a whole number from {} to {}", lowest, highest), description);
}

/// A time of at least `shortest`, in core::parse_duration's notation. `value`: a core::Duration or
/// an optional one.
template <class Value>
Option add_time(CommandLine& line, const std::string& names, Value& value, core::Duration shortest,
                const std::string& description);

/// A size from `lowest` to `highest` bytes, in core::parse_size's notation. `value`: an integer of
/// 32 bits or an optional one.
template <class Value>
Option add_size(CommandLine& line, const std::string& names, Value& value, std::uint32_t lowest,
                std::uint32_t highest, const std::string& description);

/// One of `names`.
Option add_choice(CommandLine& line, const std::string& option, std::string& value,
                  const std::vector<std::string>& names, const std::string& description);

/// Refuses an option of the reference application that has no like here: `instead` says what to do.
/// It is not in the help.
void add_foreign(CommandLine& line, const std::string& names, const std::string& instead);

/// "red, green"
std::string listed(const std::vector<std::string>& names);

/// Any text but an empty one, for add_each().
std::optional<std::string> read_name(const std::string& text);
// Used by the templates above.
std::optional<core::Duration> read_time(const std::string& text, core::Duration shortest);
std::optional<std::uint32_t> read_size(const std::string& text, std::uint32_t lowest,
                                       std::uint32_t highest);
/// Several, such as "1,4k,1m".
std::optional<std::vector<std::uint32_t>> read_sizes(const std::string& text, std::uint32_t lowest,
                                                     std::uint32_t highest);

template <class Value>
Option add_time(CommandLine& line, const std::string& names, Value& value, core::Duration shortest,
                const std::string& description) {
  const auto read = [shortest](const std::string& text) { return read_time(text, shortest); };
  const auto* const from = shortest == core::Duration{} ? "0" : "1ms";
  return add(line, with_value_name(names, "SECONDS"), value, read,
             fmt::format("a time from {} to 1000h, such as 2s or 500ms", from), description);
}

template <class Value>
Option add_size(CommandLine& line, const std::string& names, Value& value, std::uint32_t lowest,
                std::uint32_t highest, const std::string& description) {
  const auto read = [lowest, highest](const std::string& text) {
    return read_size(text, lowest, highest);
  };
  return add(line, with_value_name(names, "BYTES"), value, read,
             fmt::format("a size from {} to {} bytes, such as 4096 or 64k", lowest, highest),
             description);
}

}  // namespace offload::cli
