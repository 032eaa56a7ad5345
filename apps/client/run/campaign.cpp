#include "apps/client/run/campaign.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace offload::client {
namespace {

/// Where a search begins, and the lowest it looks at, requests a second.
constexpr double kSearchFirstRate = 1000;
constexpr double kSearchLowestRate = 0.001;
/// Fewer repeats tell no interval.
constexpr std::size_t kFewestRepeats = 3;

/// The settings of a command's runs in the order of time. Repeats of a scan alternate, so that a
/// machine that drifts drifts for all of them.
std::vector<RunSetting> settings_of(const Options& options) {
  std::vector<RunSetting> once;
  if (!options.scan) once.push_back({options.rate, options.max_concurrent_messages});
  for (const double value : options.scan ? options.scan->values : std::vector<double>{}) {
    RunSetting setting{options.rate, options.max_concurrent_messages};
    if (options.scan->of == Scan::Of::rate) setting.rate = value;
    if (options.scan->of == Scan::Of::depth) {
      setting.max_concurrent_messages = static_cast<std::uint32_t>(value);
    }
    once.push_back(setting);
  }
  std::vector<RunSetting> all;
  for (std::uint32_t i = 0; i < options.repeat; ++i)
    all.insert(all.end(), once.begin(), once.end());
  return all;
}

/// Makes the runs of a campaign.
class CampaignRunner {
 public:
  CampaignRunner(const Options& options, const Load& load, core::Signals& signals,
                 const RunObserver& observer, const std::function<void(const RunResult&)>& on_run,
                 Campaign& campaign)
      : options_(options),
        load_(load),
        signals_(signals),
        observer_(observer),
        on_run_(on_run),
        campaign_(campaign) {}

  /// Makes a run. Returns whether more may follow.
  bool run(const RunSetting& setting) {
    const RunResult& result = add_run(setting);
    return !result.interrupted && (options_.count_errors || !result.has_errors());
  }

  void search() {
    const Search& search = *options_.search;
    SearchLimits limits;
    limits.first_rate = options_.rate.value_or(kSearchFirstRate);
    limits.lowest = std::min(kSearchLowestRate, limits.first_rate);
    limits.highest = kHighestThreadRate * options_.thread_count;
    limits.bound_us = core::to_micros(search.bound);
    campaign_.search = search_rate(limits, [&](double rate) -> std::optional<Measured> {
      const RunResult& result = add_run({rate, options_.max_concurrent_messages});
      // A refusal or a lost connection is how a server fails under load; a wrong answer is not.
      if (result.interrupted || result.wrong() != 0) return std::nullopt;
      return measured_by(result, search, options_.lag_tolerance);
    });
  }

 private:
  const RunResult& add_run(const RunSetting& setting) {
    campaign_.runs.push_back(run_load(options_, setting, load_, signals_, observer_));
    on_run_(campaign_.runs.back());
    return campaign_.runs.back();
  }

  const Options& options_;
  const Load& load_;
  core::Signals& signals_;
  const RunObserver& observer_;
  const std::function<void(const RunResult&)>& on_run_;
  Campaign& campaign_;
};

/// One figure of all runs.
template <class Figure>
metrics::Estimate estimate_of(const std::vector<RunResult>& runs, Figure figure) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunResult& run : runs) values.push_back(figure(run));
  return metrics::estimate_median(values);
}

void estimate(Campaign& campaign, bool open_loop) {
  if (campaign.runs.size() < kFewestRepeats || campaign.interrupted()) return;
  const auto add = [&](const std::string& name, auto figure) {
    campaign.estimates.emplace_back(name, estimate_of(campaign.runs, figure));
  };
  add("io_rate_miops", [](const RunResult& run) { return run.million_operations_per_second(); });
  const auto add_latency = [&](const char* name, std::size_t i,
                               metrics::LatencyHistogram Interval::*latency) {
    const bool have = std::ranges::all_of(campaign.runs, [&](const RunResult& run) {
      return ((*run.total).*latency).count() >= results::kFewestSamples[i];
    });
    if (!have) return;
    add(fmt::format("{}.{}", name, results::kStatisticNames[i]),
        [=](const RunResult& run) { return ((*run.total).*latency).summary()[i].second; });
  };
  for (std::size_t i = 0; i < results::kStatisticNames.size(); ++i) {
    add_latency("service_time_us", i, &Interval::service);
    if (open_loop) add_latency("response_time_us", i, &Interval::response);
  }
}

}  // namespace

Measured measured_by(const RunResult& result, const Search& search, core::Duration lag_tolerance) {
  const Interval& total = *result.total;
  // The percentile says how many responses are enough, so the run's own too_few does not count.
  const LoadVerdict::Code code =
      result.verdict.code == LoadVerdict::Code::cut_short
          ? LoadVerdict::Code::cut_short
          : judge_load(result.load_seen(result.setting.rate, lag_tolerance)).code;
  Measured measured;
  measured.achieved_per_second = result.valid_per_second();
  measured.latency_us = core::to_micros(total.response.percentile(search.quantile));
  // Is it over the bound, but by a time that this client may have added itself?
  const double lag_us = core::to_micros(total.lag.percentile(search.quantile));
  const double bound_us = core::to_micros(search.bound);
  const bool is_doubtful =
      measured.latency_us > bound_us && measured.latency_us - lag_us <= bound_us;
  // A few latencies can exceed a bound, but they cannot meet it.
  measured.held = has_percentile(total.response, search.quantile);
  measured.too_few =
      code == LoadVerdict::Code::too_few || (!measured.held && measured.latency_us <= bound_us);
  measured.trusted = code != LoadVerdict::Code::client_late && !is_doubtful && !measured.too_few;
  measured.kept_up =
      code == LoadVerdict::Code::kept_up && !result.has_errors() && result.unanswered == 0;
  return measured;
}

void run_campaign(const Options& options, const Load& load, core::Signals& signals,
                  const RunObserver& observer, const std::function<void(const RunResult&)>& on_run,
                  Campaign& campaign) {
  CampaignRunner runner(options, load, signals, observer, on_run, campaign);
  if (options.search) return runner.search();
  for (const RunSetting& setting : settings_of(options)) {
    if (!runner.run(setting)) return;
  }
  if (!options.scan) estimate(campaign, options.is_open_loop());
}

}  // namespace offload::client
