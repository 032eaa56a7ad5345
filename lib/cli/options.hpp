#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/leave.hpp"
#include "core/clock.hpp"

/// The command lines of all programs alike: one line for what is wrong, with what is allowed.
namespace offload::cli {

/// Defines an option as a text that `read` turns into a value, or refuses by returning nothing:
/// then `allowed` completes the sentence "--name: '...' is not ...". `names`: the long one last.
template <class Value, class Read>
CLI::Option* add(CLI::App& app, const std::string& names, Value& value, Read read,
                 const std::string& allowed, const std::string& description) {
  const std::string name = names.substr(names.rfind("--"));
  return app.add_option_function<std::string>(
      names,
      [name, &value, read, allowed](const std::string& text) {
        const auto result = read(text);
        if (!result) {
          throw CLI::ValidationError(name, fmt::format("'{}' is not {}", text, allowed));
        }
        value = *result;
      },
      description);
}

/// A whole number of `lowest` to `highest`; the default shown is what `value` holds.
template <class Integer>
CLI::Option* add_integer(CLI::App& app, const std::string& names, Integer& value, Integer lowest,
                         Integer highest, const std::string& description) {
  const auto read = [lowest, highest](const std::string& text) -> std::optional<Integer> {
    Integer number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end || number < lowest || number > highest) {
      return std::nullopt;
    }
    return number;
  };
  return add(app, names, value, read, fmt::format("a whole number from {} to {}", lowest, highest),
             description)
      ->type_name("COUNT")
      ->default_str(std::to_string(value));
}

/// A time of at least `shortest`, in core::parse_duration's notation. `value`: a core::Duration or
/// an optional one.
template <class Value>
CLI::Option* add_time(CLI::App& app, const std::string& names, Value& value,
                      core::Duration shortest, const std::string& description);

/// A size from `lowest` to `highest` bytes, in core::parse_size's notation. `value`: an integer of
/// 32 bits or an optional one.
template <class Value>
CLI::Option* add_size(CLI::App& app, const std::string& names, Value& value, std::uint32_t lowest,
                      std::uint32_t highest, const std::string& description);

/// One of `names`; the default shown is what `value` holds.
CLI::Option* add_choice(CLI::App& app, const std::string& option, std::string& value,
                        const std::vector<std::string>& names, const std::string& description);

/// --log-level, into `level`.
void add_log_level(CLI::App& app, std::string& level);

/// Adds --help and --version to `app`, called so, and parses. Nothing: go on.
std::optional<Leave> parse(CLI::App& app, const std::string& program, int argc,
                           const char* const* argv);

// What the templates above stand on.
std::optional<core::Duration> read_time(const std::string& text, core::Duration shortest);
std::optional<std::uint32_t> read_size(const std::string& text, std::uint32_t lowest,
                                       std::uint32_t highest);

template <class Value>
CLI::Option* add_time(CLI::App& app, const std::string& names, Value& value,
                      core::Duration shortest, const std::string& description) {
  const auto read = [shortest](const std::string& text) { return read_time(text, shortest); };
  const auto* const from = shortest == core::Duration{} ? "0" : "1ms";
  return add(app, names, value, read,
             fmt::format("a time from {} to 1000h, such as 2s or 500ms", from), description)
      ->type_name("SECONDS");
}

template <class Value>
CLI::Option* add_size(CLI::App& app, const std::string& names, Value& value, std::uint32_t lowest,
                      std::uint32_t highest, const std::string& description) {
  const auto read = [lowest, highest](const std::string& text) {
    return read_size(text, lowest, highest);
  };
  return add(app, names, value, read,
             fmt::format("a size from {} to {} bytes, such as 4096 or 64k", lowest, highest),
             description)
      ->type_name("BYTES");
}

}  // namespace offload::cli
