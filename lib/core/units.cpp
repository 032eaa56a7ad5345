#include "core/units.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace offload::core {

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  unsigned shift = 0;
  if (suffix == "k" || suffix == "K") shift = 10;
  if (suffix == "m" || suffix == "M") shift = 20;
  if (suffix == "g" || suffix == "G") shift = 30;
  if (shift == 0 && !suffix.empty()) return std::nullopt;
  if (value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return value << shift;
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  double nanoseconds = 0;
  if (suffix.empty() || suffix == "s") {
    nanoseconds = 1e9;
  } else if (suffix == "us") {
    nanoseconds = 1e3;
  } else if (suffix == "ms") {
    nanoseconds = 1e6;
  } else if (suffix == "m") {
    nanoseconds = 60e9;
  } else if (suffix == "h") {
    nanoseconds = 3600e9;
  } else {
    return std::nullopt;
  }
  if (value * nanoseconds > 1000.0 * 3600e9) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(value * nanoseconds));
}

}  // namespace offload::core
