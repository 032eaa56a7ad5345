#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace offload::core {

/// A size in bytes from a text such as "4096", "64k", "16m", "1g" (binary multiples, either case);
/// nothing if the text is malformed or the size does not fit.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// A duration from a text such as "2" (seconds), "1.5s", "250ms", "20us", "2m", "1h"; nothing if
/// the text is malformed, or the duration is negative or longer than 1000 hours.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace offload::core
