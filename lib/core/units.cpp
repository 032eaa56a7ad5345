#include "core/units.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace offload::core {
namespace {

struct Unit {
  std::string_view suffix;
  double nanoseconds;
};
constexpr Unit kUnits[] = {{"", 1e9},   {"s", 1e9},  {"ms", 1e6},
                           {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}};
constexpr double kLongest = 1000 * 3600e9;

}  // namespace

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
  for (const Unit& unit : kUnits) {
    if (suffix != unit.suffix || value * unit.nanoseconds > kLongest) continue;
    return std::chrono::nanoseconds(std::llround(value * unit.nanoseconds));
  }
  return std::nullopt;
}

}  // namespace offload::core
