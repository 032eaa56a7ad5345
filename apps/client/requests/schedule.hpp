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

  /// Of a file with an offset and a size a line, such as "0.25 64" or "1500us 4k". Empty lines and
  /// what follows '#' are skipped. Throws Error, which names file and line: for a line that is
  /// malformed, an offset before that of the line above, and for a file without requests.
  static Schedule read(const std::string& path);
  /// The same of a file's text; `name`: the file's.
  static Schedule parse(std::istream& text, const std::string& name);
};

}  // namespace offload::client
