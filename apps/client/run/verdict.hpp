#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace offload::client {

/// A run's figures about its own load.
struct LoadSeen {
  std::optional<double> offered;  ///< requests a second; none: a closed loop
  double achieved = 0;            ///< valid responses a second
  std::uint64_t timed = 0;        ///< right responses, those that have a latency
  std::uint64_t due = 0;
  std::uint64_t noticed_late = 0;  ///< of these, noticed by the client after the tolerance
  std::uint64_t held_back = 0;     ///< noticed in time, sent after the tolerance or never
  std::uint64_t never_sent = 0;
  std::uint64_t unfinished = 0;  ///< without a response when the last one became due, for too long
  core::Duration lag_p99{};      ///< from the intended time until the client noticed
  core::Duration tolerance{};
  double busy = 0;  ///< of the busiest load thread, 0 to 1
};

/// Whether the load was what was asked for, and who is to blame if it was not.
struct LoadVerdict {
  enum class Code : std::uint8_t {
    closed_loop,  ///< each response makes room for the next request: neither side can be late
    kept_up,
    server_late,  ///< requests found no room in time, or their responses did not come in time
    client_late,  ///< the client noticed too late what was due, or had no time left
    cut_short,    ///< an error or a signal ended the run: it was not the load asked for
    too_few,      ///< a single late request decides, or there are too few right responses
  };
  Code code = Code::closed_loop;
  std::string text;  ///< one line
};

/// "closed_loop", "kept_up", "server_late", "client_late", "cut_short", "too_few"
std::string_view name_of(LoadVerdict::Code code) noexcept;

/// More than 1 % late requests are too many, but a single one proves nothing. Names the side that
/// made more of them late.
LoadVerdict judge_load(const LoadSeen& seen);

/// judge_load() for a whole run: an open loop with fewer than results::kFewestResponses right
/// responses has no good verdict, and a closed one says so.
LoadVerdict judge_run(const LoadSeen& seen);

}  // namespace offload::client
