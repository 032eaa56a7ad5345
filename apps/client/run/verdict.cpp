#include "apps/client/run/verdict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "results/result.hpp"

namespace offload::client {
namespace {

using Code = LoadVerdict::Code;

constexpr double kMostLate = 0.01;
/// A thread that has so little time left may be why responses are taken late.
constexpr double kBusy = 0.95;

constexpr std::string_view kVerdictNames[] = {"closed_loop", "kept_up",   "server_late",
                                              "client_late", "cut_short", "too_few"};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// A single request is no share: among fewer than 100 it would always be too much.
bool are_too_many(std::uint64_t late, std::uint64_t due) {
  return late > 1 && share(late, due) > kMostLate;
}

LoadVerdict judge_closed_loop(const LoadSeen& seen) {
  std::string text = fmt::format(
      "closed loop: {:.1f}/s; a slow server gets fewer requests, so there is no response time from "
      "intended times (use --rate for that)",
      seen.achieved);
  if (seen.busy > kBusy) {
    text += fmt::format("; the threads of this client were {:.0f} % busy: the server may be faster",
                        100 * seen.busy);
  }
  return {Code::closed_loop, text};
}

std::string describe_client(const LoadSeen& seen, double late) {
  std::string text =
      fmt::format("noticed {:.1f} % of the requests more than {:g} ms after they were due",
                  100 * late, core::to_seconds(seen.tolerance) * 1e3);
  if (seen.due >= results::kFewestSamples[static_cast<std::size_t>(results::Statistic::p99)]) {
    text += fmt::format(" (p99 {:.3f} ms)", core::to_seconds(seen.lag_p99) * 1e3);
  }
  return text;
}

std::string describe_server(const LoadSeen& seen) {
  return fmt::format(
      "{:.1f} % of the requests waited for responses before they could be sent, {} were never "
      "sent, {} had no response in time when the last one was due",
      100 * share(seen.held_back, seen.due), seen.never_sent, seen.unfinished);
}

std::string describe_too_few(const LoadSeen& seen) {
  if (seen.due == 0) return "too few requests for a verdict: none was due";
  return fmt::format("too few requests for a verdict: 1 of {} was late, and at most {:g} % may be",
                     seen.due, 100 * kMostLate);
}

}  // namespace

std::string_view name_of(LoadVerdict::Code code) noexcept {
  return kVerdictNames[static_cast<std::size_t>(code)];
}

LoadVerdict judge_load(const LoadSeen& seen) {
  if (!seen.offered) return judge_closed_loop(seen);
  const std::string rates =
      fmt::format("offered {:.1f}/s, achieved {:.1f}/s: ", *seen.offered, seen.achieved);
  const std::uint64_t by_client = seen.noticed_late;
  const std::uint64_t by_server = std::max(seen.held_back, seen.unfinished);
  const bool is_client_late = are_too_many(by_client, seen.due);
  const bool is_server_late = are_too_many(by_server, seen.due);
  if (is_server_late && seen.busy > kBusy) {
    return {
        Code::client_late,
        rates + fmt::format("this client was late: its threads were {:.0f} % busy (increase -t)",
                            100 * seen.busy)};
  }
  const std::string client = describe_client(seen, share(by_client, seen.due));
  if (is_server_late && by_server >= by_client) {
    return {Code::server_late,
            rates + "the server was late: " + describe_server(seen) +
                (is_client_late ? "; the client also " + client : std::string())};
  }
  if (is_client_late) {
    return {Code::client_late,
            rates + "this client was late: it " + client +
                (is_server_late ? "; the server was late, too: " + describe_server(seen)
                                : std::string())};
  }
  if (seen.due == 0 || share(std::max(by_client, by_server), seen.due) > kMostLate) {
    return {Code::too_few, rates + describe_too_few(seen)};
  }
  return {Code::kept_up, rates + "the server kept up"};
}

LoadVerdict judge_run(const LoadSeen& seen) {
  LoadVerdict verdict = judge_load(seen);
  if (seen.timed >= results::kFewestResponses) return verdict;
  const std::string few =
      fmt::format("{} right {}, and {} are needed", seen.timed,
                  seen.timed == 1 ? "response" : "responses", results::kFewestResponses);
  if (verdict.code == Code::closed_loop) {
    verdict.text += fmt::format("; too few for a p99 or a comparison: {}", few);
  } else if (verdict.code == Code::kept_up) {
    verdict = {
        Code::too_few,
        fmt::format("offered {:.1f}/s, achieved {:.1f}/s: too few requests for a verdict: {}",
                    *seen.offered, seen.achieved, few)};
  }
  return verdict;
}

}  // namespace offload::client
