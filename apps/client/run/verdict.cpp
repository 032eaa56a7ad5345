#include "apps/client/run/verdict.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace offload::client {
namespace {

using Code = LoadVerdict::Code;

constexpr double kMostLate = 0.01;
/// A thread that has so little time left may be why responses are taken late.
constexpr double kBusy = 0.95;
/// Seconds: that much of the load may be in flight at the end, whatever the service time is.
constexpr double kUsualBacklog = 0.05;

constexpr std::string_view kVerdictNames[] = {"closed_loop", "kept_up", "server_late",
                                              "client_late", "cut_short"};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

LoadVerdict judge_closed_loop(const LoadSeen& seen) {
  std::string text = fmt::format(
      "closed loop: {:.1f}/s; a slow server is asked less, so there is no response time from "
      "intended times (--rate has it)",
      seen.achieved);
  if (seen.busy > kBusy) {
    text += fmt::format("; this client's threads were {:.0f} % busy: the server may be faster",
                        100 * seen.busy);
  }
  return {Code::closed_loop, text};
}

std::string describe_client(const LoadSeen& seen, double late) {
  return fmt::format(
      "noticed {:.1f} % of the requests more than {:g} ms after they were due (p99 "
      "{:.3f} ms)",
      100 * late, core::to_seconds(seen.tolerance) * 1e3, core::to_seconds(seen.lag_p99) * 1e3);
}

std::string describe_server(const LoadSeen& seen) {
  return fmt::format(
      "{:.1f} % of the requests had to wait for responses before they could be sent, {} were never "
      "sent, {} had no response when the last one was due",
      100 * share(seen.held_back, seen.due), seen.never_sent, seen.unfinished);
}

/// The share of the requests that had no response at the end, if they are more than a server
/// without a queue would have had in flight.
double backlog_of(const LoadSeen& seen) {
  const double usual = std::max(2 * core::to_seconds(seen.usual_service), kUsualBacklog);
  const bool is_usual = static_cast<double>(seen.unfinished) <= *seen.offered * usual;
  return is_usual ? 0 : share(seen.unfinished, seen.due);
}

}  // namespace

std::string_view name_of(LoadVerdict::Code code) noexcept {
  return kVerdictNames[static_cast<std::size_t>(code)];
}

LoadVerdict judge_load(const LoadSeen& seen) {
  if (!seen.offered) return judge_closed_loop(seen);
  const std::string rates =
      fmt::format("offered {:.1f}/s, achieved {:.1f}/s: ", *seen.offered, seen.achieved);
  const double by_client = share(seen.noticed_late, seen.due);
  const double by_server = std::max(share(seen.held_back, seen.due), backlog_of(seen));
  if (by_server > kMostLate && seen.busy > kBusy) {
    return {Code::client_late, rates + fmt::format("this client was late: its threads were {:.0f} "
                                                   "% busy (-t has more)",
                                                   100 * seen.busy)};
  }
  const std::string client = describe_client(seen, by_client);
  if (by_server > kMostLate && by_server >= by_client) {
    const bool both = by_client > kMostLate;
    return {Code::server_late, rates + "the server was late: " + describe_server(seen) +
                                   (both ? "; the client, too, " + client : std::string())};
  }
  if (by_client > kMostLate) {
    return {Code::client_late, rates + "this client was late: it " + client};
  }
  return {Code::kept_up, rates + "the server kept up"};
}

}  // namespace offload::client
