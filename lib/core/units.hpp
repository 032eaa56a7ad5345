#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace offload::core {

/// "4096", "64k", "16m", "1g" (binary multiples, either case) as bytes; nothing if it is not that
/// or does not fit.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// "2" (seconds), "1.5s", "250ms", "20us", "2m", "1h" as a duration; nothing if it is not that, is
/// negative, or longer than 1000 hours.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace offload::core
