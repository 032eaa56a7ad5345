#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace offload::core {

/// The whole of a text as a number; nothing if it is malformed or does not fit `Number`.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_integral_v<Number>) {
    result = std::from_chars(text.data(), end, number, base);
  } else {
    result = std::from_chars(text.data(), end, number);
  }
  return result.ec == std::errc{} && result.ptr == end ? std::optional(number) : std::nullopt;
}

/// A size in bytes from a text such as "4096", "64k", "16m", "1g" (binary multiples, either case);
/// nothing if the text is malformed or the size does not fit.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// A duration from a text such as "2" (seconds), "1.5s", "250ms", "20us", "2m", "1h"; nothing if
/// the text is malformed, or the duration is negative or longer than 1000 hours.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace offload::core
