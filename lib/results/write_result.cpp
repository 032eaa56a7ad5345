#include "results/write_result.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "metrics/hdr_codec.hpp"
#include "results/members.hpp"

namespace offload::results {
namespace {

using Json = nlohmann::ordered_json;

/// Writes the members that describe() shows into an object.
class MemberWriter {
 public:
  explicit MemberWriter(Json& object) : object_(object) {}

  template <class Value, class... Limit>
  void operator()(const char* name, const Value& value, Limit... limit) const {
    object_[name] = json_of(value, limit...);
  }
  void statistic(const char* name, double us, bool has) const {
    object_[name] = has ? Json(us) : Json();
  }
  template <class Members>
  void group(const char* name, Members members) const {
    members(MemberWriter(object_[name] = Json::object()));
  }
  void extra(const char* name, const std::optional<double>& number) const {
    if (number) object_[name] = *number;
  }
  void extra(const char* name, const std::optional<Counts>& counts) const {
    if (counts) object_[name] = json_of(*counts, EmptyIsNull{});
  }
  void presence(const char* name, bool /*is_there*/) const { object_[name] = nullptr; }

 private:
  static Json json_of(const std::string& text, Names /*allowed*/ = {}) { return text; }
  static Json json_of(double number, double /*most*/ = 0) { return number; }
  static Json json_of(std::uint64_t count) { return count; }

  template <class Value, class... Limit>
  static Json json_of(const std::optional<Value>& value, Limit... limit) {
    return value ? json_of(*value, limit...) : Json();
  }
  template <class Value>
  static Json json_of(const std::vector<Value>& list, std::size_t /*most*/) {
    Json array = Json::array();
    for (const Value& each : list) array.push_back(json_of(each));
    return array;
  }
  template <class Value>
  static Json json_of(const std::vector<std::pair<std::string, Value>>& list, std::size_t) {
    Json object = Json::object();
    for (const auto& [name, each] : list) object[name] = json_of(each);
    return object;
  }
  /// Options, whose values are JSON, or what a merge made of several.
  static Json json_of(const std::vector<std::pair<std::string, std::string>>& list, std::size_t) {
    Json object = Json::object();
    for (const auto& [name, text] : list) {
      Json value = Json::parse(text, nullptr, false);
      object[name] = value.is_discarded() ? Json(text) : std::move(value);
    }
    return object;
  }
  template <class List>
  static Json json_of(const List& list, EmptyIsNull limit) {
    return list.empty() ? Json() : json_of(list, limit.most);
  }
  template <class Object>
  static Json json_of(const Object& value) {
    Json object;
    describe(MemberWriter(object), value);
    return object;
  }

  Json& object_;
};

}  // namespace

Latency Latency::of(const metrics::LatencyHistogram& histogram) {
  Latency latency;
  latency.count = histogram.count();
  latency.histogram = metrics::encode_hdr(histogram);
  const auto summary = histogram.summary();
  static_assert(std::tuple_size_v<decltype(summary)> == std::tuple_size_v<decltype(latency.us)>);
  for (std::size_t i = 0; i < summary.size(); ++i) latency.us[i] = summary[i].second;
  return latency;
}

IntervalLatency IntervalLatency::of(const metrics::LatencyHistogram& histogram) {
  return {core::to_micros(histogram.percentile(0.5)), core::to_micros(histogram.percentile(0.99)),
          core::to_micros(histogram.max()), metrics::encode_hdr(histogram), histogram.count()};
}

Json result_json(const Result& result) {
  Json whole = {{"program", kProgram}, {"format", kFormat}};
  describe(MemberWriter(whole), result);
  return whole;
}

std::string result_text(const Result& result) {
  return result_json(result).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace offload::results
