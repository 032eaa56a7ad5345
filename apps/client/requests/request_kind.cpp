#include "apps/client/requests/request_kind.hpp"

#include <algorithm>
#include <string_view>

#include "core/units.hpp"

namespace offload::client {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr double kHeaviest = 1e9;
constexpr std::string_view kVerify = "verify=";

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
  });
}

/// Takes the value of a key. Returns whether the two are valid.
bool take(RequestKind& kind, std::string_view key, const std::string& value) {
  if (key == "port") {
    kind.port = core::parse_number<std::uint16_t>(value);
    return kind.port && *kind.port != 0;
  }
  if (key == "weight") {
    const auto weight = core::parse_number<double>(value);
    kind.weight = weight.value_or(0);
    return kind.weight > 0 && kind.weight <= kHeaviest;
  }
  if (key == "size") {
    const auto bytes = core::parse_size(value);
    if (!bytes || *bytes > kLongestMessage) return false;
    kind.sizes = SizeMix{{static_cast<std::uint32_t>(*bytes), 1}};
    return true;
  }
  if (key == "requests") {
    kind.requests_file = value;
    return !value.empty();
  }
  if (key == "service") {
    kind.service = service_named(value);
    return kind.service.has_value();
  }
  if (key != "verify") return false;
  kind.verification = Verification::parse(value);
  return kind.verification.has_value();
}

}  // namespace

std::optional<RequestKind> RequestKind::parse(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  RequestKind kind;
  kind.name = text.substr(0, colon);
  kind.text = text;
  if (!is_name(kind.name)) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(std::min(colon + 1, text.size()));
  while (!rest.empty()) {
    const bool is_last = rest.starts_with(kVerify);
    const std::size_t end = is_last ? rest.size() : std::min(rest.find(','), rest.size());
    const std::size_t equals = rest.find('=');
    if (equals >= end) return std::nullopt;
    if (!take(kind, rest.substr(0, equals), std::string(rest.substr(equals + 1, end - equals - 1))))
      return std::nullopt;
    rest = rest.substr(std::min(end + 1, rest.size()));
  }
  const bool is_said_twice =
      (kind.sizes && !kind.requests_file.empty()) || (kind.service && kind.verification);
  if (is_said_twice) return std::nullopt;
  const bool is_recorded =
      kind.verification && kind.verification->kind == Verification::Kind::recorded;
  if (is_recorded && kind.requests_file.empty()) return std::nullopt;
  return kind;
}

}  // namespace offload::client
