#include "cli/config_file.hpp"

#include <fmt/core.h>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/fd.hpp"

namespace offload::cli {
namespace {

/// A longer file is another file.
constexpr std::size_t kMostBytes = 64U << 10;

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  throw core::Error(core::ErrorCode::invalid_value, fmt::format("{}: {}", place, why));
}

std::string read_text(const std::string& path) {
  const std::string action = "cannot read '" + path + "'";
  const core::Fd file = core::open_regular_file(path, action);
  std::string text(kMostBytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < text.size();
       size += static_cast<std::size_t>(count)) {
    count = core::check_errno(::read(file.get(), &text[size], text.size() - size), action);
  }
  if (size > kMostBytes) refuse(path, fmt::format("is longer than {} bytes", kMostBytes));
  text.resize(size);
  return text;
}

/// Returns the place of the byte at `at`.
std::string place_in(const std::string& path, std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", path, line, before.size() - begin + 1);
}

// ---- TOML

std::string place_of(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", path, source.begin.line, source.begin.column);
}

std::optional<std::string> text_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* yes = value.as_boolean()) return yes->get() ? "true" : "false";
  return std::nullopt;
}

std::vector<std::string> values_of(const std::string& path, const toml::node& value) {
  std::vector<std::string> values;
  const auto take = [&](const toml::node& one) {
    auto text = text_of(one);
    if (!text) refuse(place_of(path, one.source()), "expected text, number, true, false or a list");
    values.push_back(*std::move(text));
  };
  if (const auto* list = value.as_array()) {
    for (const auto& each : *list) take(each);
  } else {
    take(value);
  }
  return values;
}

/// The tables of `name` that `value` is, empty if it is a setting's value.
std::vector<const toml::table*> tables_of(const toml::node& value) {
  if (const auto* table = value.as_table()) return {table};
  std::vector<const toml::table*> tables;
  const auto* list = value.as_array();
  if (list == nullptr || list->empty()) return tables;
  for (const auto& each : *list) {
    if (const auto* table = each.as_table()) tables.push_back(table);
  }
  return tables.size() == list->size() ? tables : std::vector<const toml::table*>();
}

/// The settings of a table in the file's order, as of two that exclude each other the second one is
/// wrong; a toml::table is ordered by name. Its tables are appended to `inner`, or refused if that
/// is null.
std::vector<Setting> settings_of(const std::string& path, const toml::table& table,
                                 std::vector<std::pair<std::string, const toml::table*>>* inner) {
  std::vector<std::pair<toml::source_position, Setting>> found;
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const auto tables = tables_of(value);
    if (!tables.empty() && inner == nullptr) {
      refuse(place_of(path, key.source()), "a table; expected options");
    }
    for (const auto* each : tables) inner->emplace_back(name, each);
    if (!tables.empty()) continue;
    found.emplace_back(key.source().begin,
                       Setting{name, values_of(path, value), place_of(path, key.source())});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<Setting> settings;
  for (auto& each : found) settings.push_back(std::move(each.second));
  return settings;
}

toml::table parse_toml(const std::string& path, std::string_view text) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    refuse(place_of(path, error.source()), core::escaped(error.description()));
  }
}

// ---- JSON

/// A member's place is that of its name, which the parser does not keep: the first in the text.
std::string place_of_name(const std::string& path, std::string_view text, const std::string& name) {
  const std::size_t at = text.find('"' + name + '"');
  return at == std::string_view::npos ? path : place_in(path, text, at);
}

Setting setting_of(const std::string& place, const std::string& name,
                   const nlohmann::ordered_json& value) {
  Setting setting{name, {}, place};
  const auto take = [&](const nlohmann::ordered_json& one) {
    if (one.is_null() || one.is_structured()) {
      refuse(place,
             fmt::format("{}: expected text, number, true, false or a list", core::escaped(name)));
    }
    setting.values.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  };
  if (value.is_array()) {
    for (const auto& each : value) take(each);
  } else {
    take(value);
  }
  return setting;
}

std::vector<Setting> read_json(const std::string& path, std::string_view text) {
  nlohmann::ordered_json object;
  try {
    constexpr bool kThrows = true;
    constexpr bool kTakesComments = true;
    object = nlohmann::ordered_json::parse(text, nullptr, kThrows, kTakesComments);
  } catch (const nlohmann::json::parse_error& error) {
    refuse(place_in(path, text, error.byte == 0 ? 0 : error.byte - 1), "is not valid JSON");
  }
  std::vector<Setting> settings;
  const auto add = [&](const auto& member) {
    settings.push_back(
        setting_of(place_of_name(path, text, member.key()), member.key(), member.value()));
  };
  for (const auto& member : object.items()) {
    const bool is_group =
        member.key() == "doca_general_flags" || member.key() == "doca_program_flags";
    if (!is_group || !member.value().is_object()) {
      add(member);
      continue;
    }
    for (const auto& inner : member.value().items()) add(inner);
  }
  return settings;
}

}  // namespace

std::vector<Setting> read_config(const std::string& path) {
  const std::string text = read_text(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  return is_json ? read_json(path, text) : settings_of(path, parse_toml(path, text), nullptr);
}

std::vector<SettingTable> read_config_tables(const std::string& path) {
  const std::string text = read_text(path);
  const toml::table root = parse_toml(path, text);
  std::vector<std::pair<std::string, const toml::table*>> inner;
  std::vector<SettingTable> tables{{"", settings_of(path, root, &inner), path}};
  std::stable_sort(inner.begin(), inner.end(), [](const auto& one, const auto& other) {
    return one.second->source().begin < other.second->source().begin;
  });
  for (const auto& [name, table] : inner) {
    tables.push_back({name, settings_of(path, *table, nullptr), place_of(path, table->source())});
  }
  return tables;
}

}  // namespace offload::cli
