#include "apps/client/experiment/experiment.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <variant>

#include "cli/config_file.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/units.hpp"

namespace offload::client {
namespace {

using cli::Setting;
using cli::SettingTable;

constexpr core::Duration kShortest = std::chrono::milliseconds(1);
constexpr double kMostTolerance = 0.5;

[[noreturn]] void refuse_at(const std::string& place, const std::string& why) {
  throw core::Error(core::ErrorCode::invalid_value, fmt::format("{}: {}", place, why));
}

/// Returns the only value of a setting.
const std::string& one(const Setting& setting) {
  if (setting.values.size() == 1) return setting.values.front();
  refuse_at(setting.place, core::escaped(setting.name) + ": expected one value");
}

/// Returns what `read` makes of the only value; `allowed` completes "'...' is not ...".
template <class Read>
auto value_of(const Setting& setting, Read read, const std::string& allowed) {
  const auto value = read(one(setting));
  if (value) return *value;
  refuse_at(setting.place, fmt::format("{}: '{}' is not {}", core::escaped(setting.name),
                                       core::escaped(one(setting)), allowed));
}

core::Duration time_of(const Setting& setting, core::Duration shortest) {
  const auto read = [&](const std::string& text) { return cli::read_time(text, shortest); };
  return value_of(setting, read, "a time, such as 60s or 80ms");
}

/// Returns the index of a setting's value in `names`.
template <class Names>
std::size_t index_of(const Setting& setting, const Names& names) {
  const auto read = [&](const std::string& text) -> std::optional<std::size_t> {
    const auto found = std::ranges::find(names, text);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<std::size_t>(found - std::begin(names));
  };
  return value_of(setting, read, "one of " + cli::listed({std::begin(names), std::end(names)}));
}

/// Parses "1%" or "0.01".
std::optional<double> read_tolerance(const std::string& text) {
  const bool percent = text.ends_with('%');
  auto value = core::parse_number<double>(
      std::string_view(text).substr(0, text.find(" %")).substr(0, text.find('%')));
  if (value && percent) *value /= 100;
  return value && *value > 0 && *value <= kMostTolerance ? value : std::nullopt;
}

using Keys = std::map<std::string, std::function<void(const Setting&)>>;

void take(const SettingTable& table, const Keys& keys) {
  for (const Setting& setting : table.settings) {
    const auto key = keys.find(setting.name);
    if (key != keys.end()) {
      key->second(setting);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& each : keys) names.push_back(each.first);
    refuse_at(setting.place,
              fmt::format("{} is not one of {}", core::escaped(setting.name), cli::listed(names)));
  }
}

void take_root(const SettingTable& table, Experiment& experiment) {
  take(table,
       {{"question",
         [&](const Setting& setting) {
           experiment.question = static_cast<Question>(index_of(setting, kQuestionNames));
         }},
        {"time", [&](const Setting& set) { experiment.time = time_of(set, kShortest); }},
        {"slice", [&](const Setting& set) { experiment.slice = time_of(set, kShortest); }},
        {"settle", [&](const Setting& set) { experiment.settle = time_of(set, {}); }},
        {"start-limit",
         [&](const Setting& set) { experiment.start_limit = time_of(set, kShortest); }},
        {"tolerance",
         [&](const Setting& set) {
           experiment.rules.tolerance =
               value_of(set, read_tolerance, "a share up to 50 %, such as 1%");
         }},
        {"figure",
         [&](const Setting& set) {
           experiment.rules.figure = static_cast<SliceFigure>(index_of(set, kSliceFigureNames));
         }},
        {"seed",
         [&](const Setting& set) {
           experiment.seed = value_of(
               set, [](const std::string& text) { return core::parse_number<std::uint64_t>(text); },
               "a whole number");
         }},
        {"hosts", [&](const Setting& set) { experiment.hosts = set.values; }}});
}

void take_target(const SettingTable& table, Experiment& experiment) {
  ExperimentTarget target{table.name, {}, {}, {}};
  take(table, {{"address",
                [&](const Setting& setting) {
                  const std::string& text = one(setting);
                  const std::size_t colon = text.rfind(':');
                  if (colon == std::string::npos)
                    refuse_at(setting.place, "address: expected HOST:PORT");
                  target.address = text.substr(0, colon);
                  target.port = text.substr(colon + 1);
                  if (target.address.starts_with('[') && target.address.ends_with(']')) {
                    target.address = target.address.substr(1, target.address.size() - 2);
                  }
                }},
               {"start", [&](const Setting& setting) { target.start = setting.values; }}});
  if (target.address.empty()) refuse_at(table.place, table.name + " needs an address: HOST:PORT");
  const bool is_second = std::ranges::any_of(
      experiment.targets, [&](const auto& each) { return each.name == target.name; });
  if (is_second) refuse_at(table.place, "a second " + table.name);
  experiment.targets.push_back(target);
}

/// Options that the experiment itself says, or that are of no use in it.
constexpr std::array kAlways = {
    "server-ip-address", "server-ip-port", "output",  "hlog",     "csv",
    "log-requests",      "help",           "version", "start-at", "log-level",
    "log-format",        "quiet"};
constexpr std::array kOfManyRuns = {"repeat", "scan", "search"};
constexpr std::array kOfOneRun = {"duration", "iteration-count", "schedule"};

bool may_have(Question question, const std::string& name) {
  if (std::ranges::find(kAlways, name) != kAlways.end()) return false;
  const bool is_of_many = std::ranges::find(kOfManyRuns, name) != kOfManyRuns.end();
  const bool is_of_one = std::ranges::find(kOfOneRun, name) != kOfOneRun.end();
  switch (question) {
    case Question::compare:
      return !is_of_many && !is_of_one && name != "warmup" && name != "scrape";
    case Question::soak: return !is_of_many && !is_of_one;
    case Question::search: return name != "scan" && name != "repeat";
    case Question::curve: return name != "search";
  }
  return false;
}

void take_load(const SettingTable& table, Experiment& experiment) {
  ExperimentLoad load{"", {}, table.place};
  for (const Setting& setting : table.settings) {
    if (setting.name == "name") {
      load.name = one(setting);
      continue;
    }
    if (!may_have(experiment.question, setting.name)) {
      refuse_at(setting.place,
                fmt::format("{} is not an option of a load of the question {}",
                            core::escaped(setting.name),
                            kQuestionNames[static_cast<std::size_t>(experiment.question)]));
    }
    for (const std::string& value : setting.values) {
      load.words.push_back(fmt::format("--{}={}", setting.name, value));
    }
  }
  experiment.loads.push_back(load);
}

bool has_option(const ExperimentLoad& load, const std::string& name) {
  return std::ranges::any_of(load.words,
                             [&](const auto& word) { return word.starts_with("--" + name + "="); });
}

void check(const Experiment& experiment, const std::string& path) {
  const auto& targets = experiment.targets;
  const auto has = [&](const char* name) {
    return std::ranges::any_of(targets, [&](const auto& each) { return each.name == name; });
  };
  if (!has("base")) refuse_at(path, "a table [base] is missing");
  if (experiment.question == Question::compare && !has("new")) {
    refuse_at(path, "a table [new] is missing: compare has two targets");
  }
  if (experiment.loads.empty()) refuse_at(path, "a table [[load]] is missing");
  if (!experiment.hosts.empty() && experiment.question != Question::soak) {
    refuse_at(path, "hosts belong to the question soak, whose only run begins everywhere at once");
  }
  for (const std::string& host : experiment.hosts) {
    // ssh would take it for an option.
    if (host.empty() || host.starts_with('-')) refuse_at(path, "a host is not a name");
  }
  for (const ExperimentLoad& load : experiment.loads) {
    if (experiment.question == Question::search && !has_option(load, "search")) {
      refuse_at(load.place, "search needs the option search, such as search = \"p99:500us\"");
    }
    if (experiment.question == Question::curve && !has_option(load, "scan")) {
      refuse_at(load.place, "curve needs the option scan, such as scan = \"rate=10k,20k\"");
    }
    for (const ExperimentTarget& target : targets) (void)options_of(experiment, target, load);
  }
}

}  // namespace

std::vector<std::string> words_of(const Experiment& experiment, const ExperimentTarget& target,
                                  const ExperimentLoad& load) {
  std::vector<std::string> words = {"--server-ip-address=" + target.address,
                                    "--server-ip-port=" + target.port};
  words.insert(words.end(), load.words.begin(), load.words.end());
  const auto add_time = [&](const char* name, core::Duration time) {
    words.push_back(fmt::format(
        "--{}={}us", name, std::chrono::duration_cast<std::chrono::microseconds>(time).count()));
  };
  if (experiment.question == Question::soak) add_time("duration", experiment.time);
  if (experiment.question == Question::compare) {
    add_time("duration", experiment.slice);
    add_time("warmup", experiment.settle);
  }
  words.emplace_back("--quiet");
  return words;
}

Options options_of(const Experiment& experiment, const ExperimentTarget& target,
                   const ExperimentLoad& load) {
  const std::vector<std::string> words = words_of(experiment, target, load);
  std::vector<const char*> arguments = {"offload-client"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const auto parsed = parse_options(static_cast<int>(arguments.size()), arguments.data());
  if (const auto* leave = std::get_if<cli::Leave>(&parsed)) refuse_at(load.place, leave->text);
  return std::get<Options>(parsed);
}

Experiment read_experiment(const std::string& path) {
  const auto tables = cli::read_config_tables(path);
  Experiment experiment;
  for (const SettingTable& table : tables) {
    if (table.name.empty()) {
      take_root(table, experiment);
    } else if (table.name == "base" || table.name == "new") {
      take_target(table, experiment);
    } else if (table.name == "load") {
      take_load(table, experiment);
    } else {
      refuse_at(table.place,
                fmt::format("[{}] is not one of base, new, load", core::escaped(table.name)));
    }
  }
  std::ranges::sort(experiment.targets, {}, &ExperimentTarget::name);  // base comes first
  check(experiment, path);
  return experiment;
}

}  // namespace offload::client
