#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace offload::results {

/// Parses the JSON of an untrusted text, limited in size, depth and number of values. Throws Error
/// (bad_message), which names `file`.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A JSON value for people: of a string its text, of null a dash, of any other the JSON.
std::string plain_text(const std::string& json_text);

/// A value in a JSON document, with its place in it. A missing value, or one of another kind than
/// requested, throws an Error (bad_message) of one line: "'a.json': runs[0].connections is
/// missing". It refers to the document.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string file, std::string place = {})
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

  /// The member `name` of an object.
  [[nodiscard]] JsonField at(const char* name) const;
  /// The elements of an array, `most` at most.
  [[nodiscard]] std::vector<JsonField> elements(std::size_t most) const;
  /// The members of an object, `most` at most.
  [[nodiscard]] std::vector<std::pair<std::string, JsonField>> members(std::size_t most) const;

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] std::string text() const;
  /// A text that is one of `names`.
  [[nodiscard]] std::string one_of(std::initializer_list<const char*> names) const;
  /// A whole number up to 2^53, so that sums of a thousand fit 64 bits.
  [[nodiscard]] std::uint64_t count() const;
  /// A number from 0 to `most`.
  [[nodiscard]] double number(double most = 1e15) const;
  /// A scalar, or an array of such, as JSON.
  [[nodiscard]] std::string scalar_json() const;

  /// Throws the Error for this value: "'a.json': PLACE `why`".
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const nlohmann::json* value_;
  std::string file_;
  std::string place_;
};

}  // namespace offload::results
