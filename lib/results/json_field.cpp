#include "results/json_field.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/escape.hpp"

namespace offload::results {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;
/// A second of a run has some 30 values: enough for a day of intervals. It bounds the memory that
/// a small text can ask for, as an empty array takes 3 bytes there and 60 here.
constexpr std::size_t kMostValues = 4'000'000;

[[noreturn]] void refuse_file(const std::string& file, const std::string& why) {
  throw core::Error(core::ErrorCode::bad_message, fmt::format("'{}' {}", core::escaped(file), why));
}

/// nlohmann's messages begin with "[json.exception.parse_error.101] ".
std::string message_of(const json::exception& error) {
  const std::string_view what = error.what();
  const auto at = what.find("] ");
  return core::escaped(at == std::string_view::npos ? what : what.substr(at + 2));
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  if (text.empty()) refuse_file(file, "is empty");
  std::size_t values = 0;
  const auto bound = [&](int depth, json::parse_event_t /*event*/, const json& /*value*/) {
    if (depth > kDeepest) {
      refuse_file(file, fmt::format("is nested more than {} levels deep", kDeepest));
    }
    if (++values > 2 * kMostValues) {  // an object has two events
      refuse_file(file, fmt::format("has more than {} values", kMostValues));
    }
    return true;
  };
  try {
    return json::parse(text, bound);
  } catch (const json::exception& error) {
    refuse_file(file, "is not valid JSON: " + message_of(error));
  }
}

std::string plain_text(const std::string& json_text) {
  const json value = json::parse(json_text, nullptr, false);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "–" : json_text;
}

void JsonField::refuse(const std::string& why) const {
  refuse_file(file_, fmt::format("{}{}{}", core::escaped(place_), place_.empty() ? "" : " ", why));
}

JsonField JsonField::at(const char* name) const {
  if (!value_->is_object()) refuse("is not an object");
  const auto found = value_->find(name);
  const std::string place = place_.empty() ? name : fmt::format("{}.{}", place_, name);
  if (found == value_->end()) JsonField(*value_, file_, place).refuse("is missing");
  return {*found, file_, place};
}

std::vector<JsonField> JsonField::elements(std::size_t most) const {
  if (!value_->is_array()) refuse("is not an array");
  if (value_->size() > most) refuse(fmt::format("has more than {} elements", most));
  std::vector<JsonField> fields;
  fields.reserve(value_->size());
  for (const json& element : *value_) {
    fields.emplace_back(element, file_, fmt::format("{}[{}]", place_, fields.size()));
  }
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members(std::size_t most) const {
  if (!value_->is_object()) refuse("is not an object");
  if (value_->size() > most) refuse(fmt::format("has more than {} members", most));
  std::vector<std::pair<std::string, JsonField>> fields;
  for (const auto& item : value_->items()) {
    fields.emplace_back(item.key(),
                        JsonField(item.value(), file_, fmt::format("{}.{}", place_, item.key())));
  }
  return fields;
}

bool JsonField::is_null() const {
  return value_->is_null();
}

std::string JsonField::text() const {
  if (!value_->is_string()) refuse("is not text");
  return value_->get<std::string>();
}

std::string JsonField::one_of(std::initializer_list<const char*> names) const {
  std::string name = text();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    refuse(fmt::format("is '{}', which format 1 does not have", core::escaped(name)));
  }
  return name;
}

std::uint64_t JsonField::count() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > kMost) {
    refuse("is not a whole number from 0 to 2^53");
  }
  return value_->get<std::uint64_t>();
}

double JsonField::number(double most) const {
  if (!value_->is_number()) refuse("is not a number");
  const auto number = value_->get<double>();
  if (!(number >= 0 && number <= most)) refuse(fmt::format("is not from 0 to {}", most));
  return number;
}

std::string JsonField::scalar_json() const {
  const auto is_scalar = [](const json& value) { return value.is_primitive(); };
  const bool flat = is_scalar(*value_) ||
                    (value_->is_array() && std::all_of(value_->begin(), value_->end(), is_scalar));
  if (!flat) refuse("is neither a scalar nor an array of scalars");
  return value_->dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace offload::results
