#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <istream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/client/requests/lines.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/units.hpp"

namespace offload::client {

/// 1.6 GiB of memory: more is a mistake.
inline constexpr std::size_t kMostRequests = 100'000'000;

/// The classes of the sizes seen so far.
class SizeClasses {
 public:
  explicit SizeClasses(SizeMix& sizes) : sizes_(sizes) {}

  std::uint32_t of(std::uint32_t bytes) {
    const auto [found, is_new] =
        numbers_.try_emplace(bytes, static_cast<std::uint32_t>(sizes_.size()));
    if (is_new) sizes_.push_back({bytes, 1});
    return found->second;
  }

 private:
  SizeMix& sizes_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
};

/// A request of a schedule: when it is due, from the start on, and which of the schedule's sizes it
/// has.
struct ScheduledRequest {
  core::Duration offset{};
  std::uint32_t size_class = 0;
};

/// A load to be replayed.
struct Schedule {
  std::vector<ScheduledRequest> requests;  ///< by offset
  SizeMix sizes;

  /// Reads a file with an offset and a size in each line, such as "0.25 64" or "1500us 4k". Empty
  /// lines and text after '#' are skipped. Throws Error, which names file and line: for a malformed
  /// line, for an offset before the previous line's, and for a file without requests.
  static Schedule read(const std::string& path) {
    std::ifstream file(path);
    if (!file) core::throw_errno("cannot read '" + path + "'");
    return parse(file, path);
  }
  /// The same of a file's text; `name`: the file's.
  static Schedule parse(std::istream& text, const std::string& name) {
    Schedule schedule;
    SizeClasses classes(schedule.sizes);
    Lines lines(text, name);
    for (std::string_view line; lines.next(line);) {
      const std::size_t gap = line.find_first_of(" \t,");
      if (gap == std::string_view::npos) lines.fail("each line needs an offset and a size");
      const auto offset = core::parse_duration(line.substr(0, gap));
      const std::size_t rest = std::min(line.find_first_not_of(" \t,", gap), line.size());
      const auto size = core::parse_size(line.substr(rest));
      if (!offset || !size || *size > kLongestMessage) {
        lines.fail(fmt::format("'{}' is not an offset such as 0.25 or 1500us and a size up to 16m",
                               core::escaped(line)));
      }
      if (!schedule.requests.empty() && *offset < schedule.requests.back().offset) {
        lines.fail("its offset is before the offset of the previous line");
      }
      schedule.requests.push_back({*offset, classes.of(static_cast<std::uint32_t>(*size))});
      if (schedule.sizes.size() > kMostSizes) {
        lines.fail(fmt::format("more than {} different sizes", kMostSizes));
      }
      if (schedule.requests.size() > kMostRequests) lines.fail("too many requests");
    }
    if (schedule.requests.empty()) lines.fail("it has no requests");
    return schedule;
  }
};

}  // namespace offload::client
