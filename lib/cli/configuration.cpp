#include "cli/configuration.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

#include "cli/nearest.hpp"
#include "cli/options.hpp"
#include "core/escape.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::cli {
namespace {

constexpr std::size_t kTextWidth = 96;

std::string name_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() ? std::string() : names.front();
}

bool is_flag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

/// Returns whether a file may have it, and --print-config shows it. Hidden ones have no group.
bool is_setting(const CLI::Option& option) {
  return option.get_configurable() && !option.get_lnames().empty() && name_of(option) != "version";
}

/// Takes the settings of a file after CLI11 has read the command line and before it calls
/// callbacks.
class FileSettings final : public CLI::Config {
 public:
  explicit FileSettings(CLI::App& app) : app_(&app) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }

  std::vector<CLI::ConfigItem> from_config(std::istream&) const override {
    for (const CLI::Option* option : app_->get_options()) {
      if (option->count() != 0) places_[option] = kCommandLine;
    }
    std::vector<Setting> settings;
    try {
      settings = read_config(app_->get_config_ptr()->as<std::string>());
    } catch (const std::exception& error) {
      throw CLI::ParseError(core::what_of(error), CLI::ExitCodes::InvalidError);
    }
    for (const Setting& setting : settings) take(setting);
    for (const Setting& setting : settings) check_needs(setting);
    return {};  // nothing is left for CLI11
  }

  [[nodiscard]] std::string place_of(const CLI::Option& option) const {
    const auto place = places_.find(&option);
    return place == places_.end() ? kCommandLine : place->second;
  }

 private:
  static constexpr const char* kCommandLine = "command line";

  [[noreturn]] static void refuse(const Setting& setting, const std::string& why) {
    throw CLI::ParseError(fmt::format("{}: {}", setting.place, why), CLI::ExitCodes::InvalidError);
  }

  [[nodiscard]] bool is_on_command_line(const CLI::Option* option) const {
    const auto place = places_.find(option);
    return place != places_.end() && place->second == kCommandLine;
  }

  void take(const Setting& setting) const {
    CLI::Option* const option = app_->get_option_no_throw("--" + setting.name);
    if (option == nullptr || !is_setting(*option)) {
      std::vector<std::string> names;
      for (const CLI::Option* known : app_->get_options()) {
        if (is_setting(*known) && !known->get_group().empty()) names.push_back(name_of(*known));
      }
      refuse(setting, fmt::format("'{}' is not an option{}", core::escaped(setting.name),
                                  did_you_mean(setting.name, names)));
    }
    if (is_on_command_line(option)) return;
    for (const CLI::Option* other : option->get_excludes()) {
      if (is_on_command_line(other)) return;
      if (places_.contains(other)) {
        refuse(setting, fmt::format("{} excludes {}", setting.name, name_of(*other)));
      }
    }
    if (!places_.emplace(option, setting.place).second) {
      refuse(setting, fmt::format("{} is given twice", setting.name));
    }
    give(*option, setting);
  }

  static void give(CLI::Option& option, const Setting& setting) {
    if (setting.values.empty()) return;
    if (setting.values.size() > 1 && option.get_items_expected_max() <= 1) {
      refuse(setting, fmt::format("{} takes one value", setting.name));
    }
    if (is_flag(option)) {
      if (setting.values.front() == "false") return;
      if (setting.values.front() != "true") {
        refuse(setting, fmt::format("{} must be true or false", setting.name));
      }
    }
    for (const std::string& value : setting.values) option.add_result(value);
    try {
      option.run_callback();
    } catch (const CLI::ParseError& error) {
      refuse(setting, core::escaped(error.what()));
    }
  }

  void check_needs(const Setting& setting) const {
    for (const CLI::Option* other : app_->get_option("--" + setting.name)->get_needs()) {
      if (other->count() == 0) {
        refuse(setting, fmt::format("{} needs {}", setting.name, name_of(*other)));
      }
    }
  }

  CLI::App* app_;
  mutable std::map<const CLI::Option*, std::string> places_;  ///< of all that were said
};

// ---- --print-config

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.size() < 19 && (text == "0" || text.front() != '0') &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string quoted(const std::string& text) {
  if (is_whole_number(text)) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string toml_value(const CLI::Option& option) {
  if (is_flag(option)) return "true";
  std::vector<std::string> values;
  for (const std::string& value : option.results()) values.push_back(quoted(value));
  if (option.get_items_expected_max() <= 1) return values.back();
  return fmt::format("[{}]", fmt::join(values, ", "));
}

/// Comment lines, broken between words.
std::string comment(std::string_view text) {
  std::string lines = "#";
  std::size_t column = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end != 0 && column + end + 1 > kTextWidth) {
      lines += "\n#";
      column = 1;
    }
    if (end != 0) lines.append(" ").append(text.substr(0, end));
    column += end + 1;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + '\n';
}

std::string print(const CLI::Option& option) {
  std::string text = comment(option.get_description());
  if (option.count() != 0) {
    text += fmt::format("{} = {}\n", name_of(option), toml_value(option));
  } else if (is_flag(option)) {
    text += fmt::format("#{} = false\n", name_of(option));
  } else {
    const bool is_list = option.get_items_expected_max() > 1;
    text += fmt::format("#{} = {}\n", name_of(option),
                        is_list ? "[]" : quoted(option.get_default_str()));
  }
  return text + '\n';
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the value of an option for the log, also if it was not given.
std::string value_of(const Configuration& configuration, const std::string& name) {
  const auto find = [&](const Settings& settings) {
    return std::find_if(settings.begin(), settings.end(),
                        [&](const Setting& one) { return one.name == name; });
  };
  const auto given = find(configuration.settings);
  if (given != configuration.settings.end()) {
    return core::escaped(fmt::format("{}", fmt::join(given->values, " ")));
  }
  const auto fallback = find(configuration.defaults);
  const bool is_known =
      fallback != configuration.defaults.end() && !fallback->values.front().empty();
  return is_known ? fallback->values.front() + " (default)" : "not given";
}

/// CLI11 opens the file before read_config() does, and would wait for the writer of a FIFO. It
/// reports itself a file that is not there.
std::string not_a_regular_file(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found)
    return {};
  return "'" + path + "' is not a regular file";
}

}  // namespace

void add_configuration(CommandLine& line, Configuration& configuration) {
  CLI::App& app = line.native();
  app.set_config("--config,-j,--json", "",
                 "Read options from this file, by names without dashes: TOML, or JSON as of the "
                 "reference application. The command line takes precedence. SIGHUP rereads it")
      ->check(&not_a_regular_file)
      ->type_name("FILE");
  app.config_formatter(std::make_shared<FileSettings>(app));
  app.add_flag("--check-config", configuration.check,
               "Check the options and the files that they name, print what is wrong, and exit")
      ->configurable(false);
  app.add_flag("--print-config", configuration.print,
               "Print the options in force as a file for --config, and exit")
      ->configurable(false);
}

std::string configuration_text(const CommandLine& line) {
  std::string text;
  for (const CLI::Option* option : line.native().get_options()) {
    if (is_setting(*option) && !option->get_group().empty()) text += print(*option);
  }
  text.pop_back();
  text.pop_back();
  return text;
}

void Configuration::take(const CommandLine& line) {
  const auto file = std::dynamic_pointer_cast<FileSettings>(line.native().get_config_formatter());
  settings.clear();
  defaults.clear();
  for (const CLI::Option* option : line.native().get_options()) {
    if (!is_setting(*option)) continue;
    defaults.push_back({name_of(*option), {option->get_default_str()}, {}});
    if (option->count() == 0) continue;
    settings.push_back({name_of(*option), option->results(), file->place_of(*option)});
  }
}

std::string Configuration::to_string() const {
  std::vector<std::string> texts;
  for (const Setting& setting : settings) {
    texts.push_back(
        fmt::format("{} {} ({})", setting.name, fmt::join(setting.values, " "), setting.place));
  }
  return texts.empty() ? "all defaults" : core::escaped(fmt::format("{}", fmt::join(texts, ", ")));
}

std::vector<std::string> changed(const Settings& before, const Settings& now) {
  std::vector<std::string> names;
  const auto differs_in = [](const Settings& settings, const Setting& one) {
    return std::none_of(settings.begin(), settings.end(), [&](const Setting& other) {
      return one.name == other.name && one.values == other.values;
    });
  };
  for (const Setting& setting : now) {
    if (differs_in(before, setting)) names.push_back(setting.name);
  }
  for (const Setting& setting : before) {
    const bool counted = std::find(names.begin(), names.end(), setting.name) != names.end();
    if (!counted && differs_in(now, setting)) names.push_back(setting.name);
  }
  return names;
}

std::vector<std::string> described_changes(const Configuration& before, const Configuration& now,
                                           const std::vector<std::string>& may_change) {
  std::vector<std::string> described;
  for (const std::string& name : changed(before.settings, now.settings)) {
    if (!is_one_of(name, may_change)) continue;
    described.push_back(
        fmt::format("{} {} -> {}", name, value_of(before, name), value_of(now, name)));
  }
  return described;
}

void take_changes(Configuration& configuration, const Configuration& now,
                  const std::vector<std::string>& may_change) {
  std::vector<std::string> names = changed(configuration.settings, now.settings);
  std::erase_if(names, [&](const std::string& name) { return is_one_of(name, may_change); });
  if (!names.empty()) {
    const std::vector<std::string> described = described_changes(configuration, now, names);
    core::log_warning("changes only after a restart: {}", listed(described));
  }
  Settings& settings = configuration.settings;
  std::erase_if(settings, [&](const Setting& one) { return is_one_of(one.name, may_change); });
  for (const Setting& setting : now.settings) {
    if (is_one_of(setting.name, may_change)) settings.push_back(setting);
  }
}

}  // namespace offload::cli
