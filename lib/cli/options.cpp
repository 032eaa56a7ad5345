#include "cli/options.hpp"

#include <algorithm>
#include <cstdio>

#include "core/log.hpp"
#include "core/units.hpp"

namespace offload::cli {
namespace {

/// Without trailing newlines, and with other control characters as '?': what a user typed is not
/// to move the cursor of a terminal or a log.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string without_last_newlines(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

}  // namespace

std::optional<core::Duration> read_time(const std::string& text, core::Duration shortest) {
  const auto time = core::parse_duration(text);
  return time && *time >= shortest ? time : std::nullopt;
}

std::optional<std::uint32_t> read_size(const std::string& text, std::uint32_t lowest,
                                       std::uint32_t highest) {
  const auto size = core::parse_size(text);
  if (!size || *size < lowest || *size > highest) return std::nullopt;
  return static_cast<std::uint32_t>(*size);
}

CLI::Option* add_choice(CLI::App& app, const std::string& option, std::string& value,
                        const std::vector<std::string>& names, const std::string& description) {
  const auto read = [names](const std::string& text) -> std::optional<std::string> {
    if (std::find(names.begin(), names.end(), text) == names.end()) return std::nullopt;
    return text;
  };
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  return add(app, option, value, read, "one of " + list, description + ": " + list)
      ->type_name("NAME")
      ->default_str(value);
}

void add_log_level(CLI::App& app, std::string& level) {
  add_choice(app, "--log-level", level, core::log_levels(), "What to report on standard error");
}

std::optional<Leave> parse(CLI::App& app, const std::string& program, int argc,
                           const char* const* argv) {
  app.set_help_flag("-h,--help", "Print this and leave");
  app.set_version_flag("--version", program + " " OFFLOAD_VERSION, "Print the version and leave");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Leave{0, without_last_newlines(app.help())};
  } catch (const CLI::CallForVersion& version) {
    return Leave{0, version.what()};
  } catch (const CLI::ParseError& error) {
    return Leave{kUsageError, one_line(fmt::format("{}: {} (--help lists what is allowed)", program,
                                                   without_last_newlines(error.what())))};
  }
  return std::nullopt;
}

int leave(const Leave& leave) {
  fmt::print(leave.status == 0 ? stdout : stderr, "{}\n", leave.text);
  return leave.status;
}

}  // namespace offload::cli
