#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "apps/client/requests/size_mix.hpp"
#include "core/clock.hpp"

namespace offload::client {

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
  static Schedule read(const std::string& path);
  /// The same of a file's text; `name`: the file's.
  static Schedule parse(std::istream& text, const std::string& name);
};

}  // namespace offload::client
