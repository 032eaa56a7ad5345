#include "cli/options.hpp"

#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/nearest.hpp"
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

/// Splits "-o,--output FILE" into the names that CLI11 takes and the name of the value.
std::pair<std::string, std::string> split(const std::string& names) {
  const std::size_t end = std::min(names.find(' '), names.size());
  return {names.substr(0, end), names.substr(std::min(end + 1, names.size()))};
}

Option named(CLI::Option* option, const std::string& value) {
  if (!value.empty()) option->type_name(value);
  return Option(option);
}

/// Returns "--count" for "-n,--count", and the name of a positional option.
std::string long_name(const std::string& names) {
  const std::size_t at = names.rfind("--");
  return at == std::string::npos ? names : names.substr(at);
}

/// The long names of all options that the help shows, of `app` and its parsed sub-commands.
std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands()) {
    const auto more = names_of_options(*command);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

/// Words that ask other programs for their help, version or a longer log.
std::string usual_word(const CLI::App& app, const std::string& word) {
  if (word == "help" || word == "-?") return "; did you mean --help?";
  if (word == "version" || word == "-v" || word == "-V") return "; did you mean --version?";
  const bool wants_more = word == "--verbose" || word == "-vv" || word == "--debug";
  const bool has_level = app.get_option_no_throw("--log-level") != nullptr;
  return wants_more && has_level ? "; did you mean --log-level debug?" : "";
}

/// Returns the option that `word` may be the value of: one that is required and missing.
std::string missing_name(const CLI::App& app, const std::string& word) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() != 0) continue;
    return fmt::format("; did you mean {} {}?", option->get_name(), word);
  }
  return {};
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

/// Returns the error about the first word that no option takes; empty if there is none. CLI11 tells
/// of an option that is required and missing instead, though it may be there, misspelt.
std::string unknown_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::string usual = usual_word(app, name);
    return fmt::format("unknown option '{}'{}", name,
                       usual.empty() ? did_you_mean(name, names_of_options(app)) : usual);
  }
  if (words.empty()) return {};
  const std::string& word = words.front();
  const std::string usual = usual_word(app, word);
  const std::vector<std::string> commands = names_of_commands(app);
  if (commands.empty() || !app.get_subcommands().empty()) {
    return fmt::format("unexpected argument '{}'{}", word,
                       usual.empty() ? missing_name(app, word) : usual);
  }
  const std::string meant = usual.empty() ? did_you_mean(word, commands) : usual;
  return fmt::format("unknown command '{}'{}", word,
                     meant.empty() ? "; the commands are " + listed(commands) : meant);
}

/// Returns the width to which the help is wrapped, 0: not at all. A program that reads the help
/// through a pipe gets each option's description on one line, unless COLUMNS asks for a width.
std::size_t help_width() {
  constexpr std::size_t kLeast = 80;
  constexpr std::size_t kMost = 120;
  const char* const columns = std::getenv("COLUMNS");
  auto width = core::parse_number<std::size_t>(columns == nullptr ? "" : columns).value_or(0);
  winsize window{};
  if (width == 0 && ::isatty(STDOUT_FILENO) == 1 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    width = window.ws_col;
  }
  return width == 0 ? 0 : std::clamp(width, kLeast, kMost);
}

/// Breaks the lines of the help between words. A description goes on in its column.
std::string wrapped(const std::string& help, std::size_t width) {
  constexpr std::size_t kDescription = 30;  // CLI11's column
  if (width == 0) return help;
  std::string text;
  std::string rest;  // of a paragraph's last line, which goes on in the next one
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    std::string line = std::exchange(rest, {}) + help.substr(at, end - at);
    at = end + 1;
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const bool has_column =
        line.size() > kDescription && line.compare(kDescription - 2, 2, "  ") == 0;
    const bool is_option = begin != 0 && (line[begin] == '-' || has_column);
    const std::size_t indent = is_option ? kDescription : begin;
    bool is_broken = false;
    while (line.size() > width) {
      const std::size_t space = line.rfind(' ', width);
      if (space == std::string::npos || space <= indent) break;
      text += line.substr(0, space) + '\n';
      line = std::string(indent, ' ') + line.substr(space + 1);
      is_broken = true;
    }
    const char next = at < help.size() ? help[at] : '\n';
    if (is_broken && begin == 0 && (next == '-' || (next >= 'a' && next <= 'z'))) {
      rest = line + ' ';
      continue;
    }
    text += line + '\n';
  }
  return text;
}

CLI::ValidationError refusal(const std::string& name, const std::string& text,
                             const std::string& allowed) {
  return CLI::ValidationError(name, fmt::format("'{}' is not {}", text, allowed));
}

}  // namespace

CommandLine::CommandLine(std::string program, const std::string& description,
                         const std::string& footer)
    : CommandLine(program, std::make_shared<CLI::App>(description, program)) {
  app_->footer(footer);
}

CommandLine::CommandLine(std::string program, std::shared_ptr<CLI::App> app)
    : program_(std::move(program)), app_(std::move(app)) {
  app_->set_help_flag("-h,--help", "Print this help and exit");
}

CommandLine::~CommandLine() = default;

std::optional<Leave> CommandLine::parse(int argc, const char* const* argv) {
  begin_group("Options");
  app_->set_version_flag("--version", program_ + " " OFFLOAD_VERSION, "Print the version and exit");
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Leave{0, without_last_newlines(wrapped(app_->help(), help_width()))};
  } catch (const CLI::CallForVersion& version) {
    return Leave{0, version.what()};
  } catch (const CLI::ExtrasError& error) {
    return refuse(unknown_word(*app_));
  } catch (const CLI::RequiredError& error) {
    const std::string unknown = unknown_word(*app_);
    if (!unknown.empty()) return refuse(unknown);
    const std::vector<std::string> commands = names_of_commands(*app_);
    if (!commands.empty() && app_->get_subcommands().empty()) {
      return refuse("a command is required: " + listed(commands));
    }
    return refuse(without_last_newlines(error.what()));
  } catch (const CLI::FileError& error) {
    // "server.toml was not readable (missing?)"
    const std::string text = error.what();
    return refuse("--config: " + text.substr(0, text.rfind(" (")) +
                  ": it does not exist, or this user may not read it");
  } catch (const CLI::ArgumentMismatch& error) {
    // "--config: 1 required FILE missing"
    const std::string text = without_last_newlines(error.what());
    constexpr std::string_view kRequired = ": 1 required ";
    const std::size_t at = text.find(kRequired);
    if (at == std::string::npos) return refuse(text);
    const std::string value = text.substr(at + kRequired.size());
    return refuse(fmt::format("{} requires a value, {}", text.substr(0, at),
                              value.substr(0, value.find(' '))));
  } catch (const CLI::ParseError& error) {
    return refuse(without_last_newlines(error.what()));
  }
  return std::nullopt;
}

Leave CommandLine::refuse(const std::string& wrong) const {
  return {kUsageError,
          one_line(fmt::format("{}: {} (--help lists what is allowed)", program_, wrong))};
}

void CommandLine::begin_group(const std::string& name) {
  app_->option_defaults()->group(name);
}

bool CommandLine::has(const std::string& option) const {
  return app_->count(option) != 0;
}

CommandLine& CommandLine::add_command(const std::string& name, const std::string& description,
                                      const std::string& footer) {
  const auto app = app_->get_subcommand_ptr(app_->add_subcommand(name, description));
  app->footer(footer);
  app->fallthrough();  // the options of this command line may follow the sub-command
  app_->require_subcommand(1);
  commands_.emplace_back(new CommandLine(program_, app));
  return *commands_.back();
}

bool CommandLine::said() const {
  return app_->parsed();
}

Option Option::default_str(const std::string& text) const {
  native_->default_str(text);
  return *this;
}

Option Option::required() const {
  native_->required();
  return *this;
}

Option Option::one_each() const {
  native_->allow_extra_args(false);
  return *this;
}

Option Option::needs(Option other) const {
  native_->needs(other.native_);
  return *this;
}

Option Option::excludes(Option other) const {
  native_->excludes(other.native_);
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> wrong) const {
  native_->check(std::move(wrong));
  return *this;
}

Option add_value(CommandLine& line, const std::string& names, Take take, const std::string& allowed,
                 const std::string& description) {
  const auto [flags, value] = split(names);
  const auto set = [name = long_name(flags), take = std::move(take),
                    allowed](const std::string& text) {
    if (!take(text)) throw refusal(name, text, allowed);
  };
  return named(line.native().add_option_function<std::string>(flags, set, description), value);
}

Option add_values(CommandLine& line, const std::string& names, Take take,
                  const std::string& allowed, const std::string& description) {
  const auto [flags, value] = split(names);
  const auto set = [name = long_name(flags), take = std::move(take),
                    allowed](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (!take(text)) throw refusal(name, text, allowed);
    }
  };
  return named(line.native().add_option_function<std::vector<std::string>>(flags, set, description),
               value);
}

Option add_text(CommandLine& line, const std::string& names, std::string& value,
                const std::string& description) {
  const auto [flags, type] = split(names);
  return named(line.native().add_option(flags, value, description), type).default_str(value);
}

Option add_flag(CommandLine& line, const std::string& names, bool& value,
                const std::string& description) {
  return Option(line.native().add_flag(names, value, description));
}

Option add_clearing_flag(CommandLine& line, const std::string& names, bool& value,
                         const std::string& description) {
  return Option(line.native().add_flag_callback(
      names, [&value] { value = false; }, description));
}

Option add_choice(CommandLine& line, const std::string& option, std::string& value,
                  const std::vector<std::string>& names, const std::string& description) {
  const auto read = [names](const std::string& text) -> std::optional<std::string> {
    if (std::find(names.begin(), names.end(), text) == names.end()) return std::nullopt;
    return text;
  };
  return add(line, with_value_name(option, "NAME"), value, read, "one of " + listed(names),
             description + ": " + listed(names));
}

void add_foreign(CommandLine& line, const std::string& names, const std::string& instead) {
  const auto refuse = [name = long_name(names), instead](const std::string&) {
    throw CLI::ValidationError(name, "is an option of the reference application: " + instead);
  };
  line.native().add_option_function<std::string>(names, refuse, instead)->group("");
}

std::string with_value_name(const std::string& names, const char* value) {
  return names.find(' ') == std::string::npos ? fmt::format("{} {}", names, value) : names;
}

std::string shown(core::Duration time) {
  using namespace std::chrono_literals;
  if (time % 1s == 0s) return std::to_string(time / 1s);
  return time % 1ms == 0ms ? fmt::format("{}ms", time / 1ms) : fmt::format("{}us", time / 1us);
}

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<std::string> read_name(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

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

std::optional<std::vector<std::uint32_t>> read_sizes(const std::string& text, std::uint32_t lowest,
                                                     std::uint32_t highest) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto size = read_size(text.substr(at, end - at), lowest, highest);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
    at = end + 1;
  }
  return sizes;
}

int leave(const Leave& leave) {
  fmt::print(leave.status == 0 ? stdout : stderr, "{}\n", leave.text);
  return leave.status;
}

}  // namespace offload::cli
