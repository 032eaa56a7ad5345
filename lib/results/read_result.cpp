#include "results/read_result.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.hpp"
#include "core/escape.hpp"
#include "metrics/hdr_codec.hpp"
#include "results/consistency.hpp"
#include "results/json_field.hpp"
#include "results/members.hpp"

namespace offload::results {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

/// Returns an object's histogram; refuses one that is invalid.
std::unique_ptr<metrics::LatencyHistogram> decode(const std::string& histogram,
                                                  const JsonField& object) {
  try {
    return std::make_unique<metrics::LatencyHistogram>(metrics::decode_hdr(histogram));
  } catch (const core::Error& error) {
    object.at("histogram").refuse(std::string("is not a histogram: ") + error.what());
  }
}

// Checks of whole objects, on which merging and drawing rely.

void refuse(const JsonField& field, const Contradiction& found) {
  if (!found.place.empty()) field.at(found.place.c_str()).refuse(found.why);
}

template <class Object>
void check(const JsonField& /*field*/, const Object& /*value*/) {}

void check(const JsonField& field, const Latency& latency) {
  refuse(field, contradiction_in(latency, *decode(latency.histogram, field)));
}

void check(const JsonField& field, IntervalLatency& latency) {
  const auto histogram = decode(latency.histogram, field);
  latency.count = histogram->count();
  refuse(field, contradiction_in(latency, *histogram));
}

void check(const JsonField& field, const RepeatEstimate& estimate) {
  refuse(field, contradiction_in(estimate));
}

void check(const JsonField& field, const Run& run) {
  for (std::size_t i = 1; i < run.intervals.size(); ++i) {
    if (run.intervals[i].start_s >= run.intervals[i - 1].start_s) continue;
    const JsonField interval = field.at("intervals").elements(kMostIntervals)[i];
    interval.at("start_s").refuse("is before that of the previous interval");
  }
  const Contradiction found = contradiction_in(run);
  if (!found.place.empty()) field.refuse("is inconsistent: " + found.place + " " + found.why);
}

/// Reads the members that describe() shows from an object.
class MemberReader {
 public:
  explicit MemberReader(const JsonField& field) : field_(field) {}

  template <class Value, class... Limit>
  void operator()(const char* name, Value& value, Limit... limit) const {
    read(field_.at(name), value, limit...);
  }
  void statistic(const char* name, double& us, bool /*has*/) const {
    const JsonField field = field_.at(name);
    us = field.is_null() ? 0 : field.number();
  }
  template <class Members>
  void group(const char* name, Members members) const {
    members(MemberReader(field_.at(name)));
  }
  template <class Value>
  void extra(const char* /*name*/, const Value& /*value*/) const {}
  void presence(const char* name, bool& is_there) const { is_there = !field_.at(name).is_null(); }

 private:
  static void read(const JsonField& field, std::string& text) { text = field.text(); }
  static void read(const JsonField& field, std::string& text, Names allowed) {
    text = field.one_of(allowed);
  }
  static void read(const JsonField& field, double& number, double most = 1e15) {
    number = field.number(most);
  }
  static void read(const JsonField& field, std::uint64_t& count) { count = field.count(); }

  template <class Value, class... Limit>
  static void read(const JsonField& field, std::optional<Value>& value, Limit... limit) {
    if (!field.is_null()) read(field, value.emplace(), limit...);
  }
  template <class Value>
  static void read(const JsonField& field, std::vector<Value>& list, std::size_t most) {
    for (const JsonField& each : field.elements(most)) read(each, list.emplace_back());
  }
  template <class Value>
  static void read(const JsonField& field, std::vector<std::pair<std::string, Value>>& list,
                   std::size_t most) {
    for (const auto& [name, each] : field.members(most)) {
      read(each, list.emplace_back(name, Value{}).second);
    }
  }
  /// Options, whose values stay JSON.
  static void read(const JsonField& field, std::vector<std::pair<std::string, std::string>>& list,
                   std::size_t most) {
    for (const auto& [name, each] : field.members(most)) {
      list.emplace_back(name, each.scalar_json());
    }
  }
  template <class List>
  static void read(const JsonField& field, List& list, EmptyIsNull limit) {
    if (!field.is_null()) read(field, list, limit.most);
  }
  template <class Object>
  static void read(const JsonField& field, Object& value) {
    describe(MemberReader(field), value);
    check(field, value);
  }

  const JsonField field_;
};

Result result_in(const JsonField& root, const std::string& file) {
  if (root.at("program").text() != kProgram) {
    root.at("program").refuse("is not offload-client: this is not a result of offload-client");
  }
  if (root.at("format").count() != kFormat) {
    root.at("format").refuse("is not 1, as this program needs");
  }
  Result result;
  result.file = file;
  describe(MemberReader(root), result);
  return result;
}

ResultFile answer_in(const JsonField& root, const std::string& file) {
  if (root.at("format").count() != kFormat) {
    root.at("format").refuse("is not 1, as this program needs");
  }
  ResultFile answer;
  answer.verdict = root.at("verdict").one_of(kAnswers);
  answer.sentence = root.at("sentence").text();
  for (const JsonField& load : root.at("loads").elements(kMostMembers)) {
    const std::string name = load.at("name").text();
    for (const JsonField& each : load.at("results").elements(kMostMembers)) {
      const std::string target = each.at("target").text();
      answer.results.push_back(
          result_in(each.at("result"),
                    fmt::format("{}{}{} {}", file, name.empty() ? "" : " ", name, target)));
    }
  }
  return answer;
}

std::string text_of_file(const std::string& path) {
  const std::string shown = core::escaped(path);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);  // of a regular file, no pipe
  if (error) {
    throw core::Error(core::ErrorCode::io_failed,
                      fmt::format("'{}' cannot be read: {}", shown, error.message()));
  }
  if (bytes > kMostBytes) {
    throw core::Error(core::ErrorCode::bad_message,
                      fmt::format("'{}' is longer than {} MiB", shown, kMostBytes >> 20));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!file) core::throw_errno("cannot read '" + shown + "'");
  return text;
}

}  // namespace

Result parse_result(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  return result_in(JsonField(json, file), file);
}

Result read_result(const std::string& path) {
  return parse_result(text_of_file(path), path);
}

ResultFile parse_result_file(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  const JsonField root(json, file);
  if (root.at("program").text() == kAnsweringProgram) return answer_in(root, file);
  return {"", "", {result_in(root, file)}};
}

ResultFile read_result_file(const std::string& path) {
  return parse_result_file(text_of_file(path), path);
}

}  // namespace offload::results
