#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/options.hpp"
#include "apps/client/run/load_run.hpp"
#include "apps/client/run/rate_search.hpp"
#include "apps/client/run/run_result.hpp"
#include "apps/client/run/server_figures.hpp"
#include "metrics/confidence.hpp"

namespace offload::client {

/// The results of a command: one run, the repeats, or the steps of a scan or a search.
struct Campaign {
  std::vector<RunResult> runs;
  /// For three repeats or more: figures by their name in the JSON.
  std::vector<std::pair<std::string, metrics::Estimate>> estimates;
  std::optional<SearchResult> search;
  std::optional<ServerShare> server;  ///< what the server counted meanwhile, with --scrape

  [[nodiscard]] bool interrupted() const noexcept {
    return !runs.empty() && runs.back().interrupted;
  }
  /// A search has failed if it found no rate; anything else, if something went wrong in a run.
  [[nodiscard]] bool has_failed() const noexcept {
    if (search) return !search->rate && !interrupted();
    return std::ranges::any_of(runs, [](const RunResult& run) { return run.has_errors(); });
  }
};

/// Returns what a run at one rate tells a search. `lag_tolerance`: as in Options.
Measured measured_by(const RunResult& result, const Search& search, core::Duration lag_tolerance);

/// Makes the runs that `options` ask for, with their `load`, into `campaign`, one after the other,
/// which keeps those that were made if it throws. `on_run`: called after each. A signal ends the
/// run that is under way and what would come after it, and so does a fault unless errors are
/// counted.
void run_campaign(const Options& options, const Load& load, core::Signals& signals,
                  const RunObserver& observer, const std::function<void(const RunResult&)>& on_run,
                  Campaign& campaign);

}  // namespace offload::client
