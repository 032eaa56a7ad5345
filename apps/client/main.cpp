#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/client/exit_status.hpp"
#include "apps/client/options.hpp"
#include "apps/client/report/client_metrics.hpp"
#include "apps/client/report/live_table.hpp"
#include "apps/client/report/request_log_file.hpp"
#include "apps/client/report/result_json.hpp"
#include "apps/client/report/table.hpp"
#include "apps/client/report/text_files.hpp"
#include "apps/client/run/campaign.hpp"
#include "cli/json_file.hpp"
#include "core/exit_status.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "core/signals.hpp"

namespace offload::client {
namespace {

/// The outputs for results. All files are checked before the first run.
class Results {
 public:
  explicit Results(const Options& options)
      : options_(options),
        json_(options.output, "offload-client"),
        csv_(options.csv, "--csv", kCsvMarker),
        histogram_log_(options.histogram_log, "--hlog", kHistogramLogMarker),
        requests_(options.request_log),
        live_(options.quiet),
        metrics_(options.is_open_loop()) {
    if (options.metrics) view_.emplace(*options.metrics, "offload-client", metrics_);
  }

  /// Lets the text for people out of the way of JSON on standard output.
  [[nodiscard]] std::FILE* text() const noexcept {
    return json_.is_standard_output() ? stderr : stdout;
  }

  RunObserver observer() {
    RunObserver observer;
    observer.log = requests_.log();
    observer.on_start = [this] {
      requests_.begin_run(core::Clock::now());
      std::optional<core::Duration> length;
      if (options_.duration) length = options_.warmup + *options_.duration;
      live_.begin(length, options_.is_open_loop());
      metrics_.begin_run();
    };
    if (view_) observer.on_interval = [this](const Interval& each) { metrics_.add(each); };
    observer.on_second = [this](const results::RunInterval& second) { live_.show(second); };
    observer.on_turn = [this] { requests_.write_pending(); };
    return observer;
  }

  /// A run that observer() saw has ended.
  void end_run() { metrics_.end_run(); }

  /// Writes what can be written, the JSON first. Returns what could not.
  std::vector<std::string> write(const Campaign& campaign,
                                 const std::vector<std::string>& command_line,
                                 const std::string& failure) {
    std::vector<std::string> failures;
    const auto attempt = [&](auto write_one) {
      try {
        write_one();
      } catch (const std::exception& error) {
        failures.emplace_back(core::what_of(error));
      }
    };
    attempt([&] { json_.write(make_json(options_, campaign, command_line, failure)); });
    attempt([&] { csv_.write(make_csv(campaign)); });
    attempt([&] { histogram_log_.write(make_histogram_log(campaign)); });
    attempt([&] { requests_.commit(); });
    return failures;
  }

 private:
  const Options& options_;
  cli::JsonFile json_;
  cli::OutputFile csv_;
  cli::OutputFile histogram_log_;
  RequestLogFile requests_;
  LiveTable live_;
  ClientMetrics metrics_;
  std::optional<telemetry::Routes> view_;  ///< of metrics_
};

void print_estimates(const Campaign& campaign, std::FILE* to) {
  for (const auto& [name, estimate] : campaign.estimates) {
    fmt::print(to, "{:<26}median {:.6g} ({:.6g} to {:.6g} with 95 % confidence)\n", name + ":",
               estimate.middle, estimate.low, estimate.high);
  }
}

void print_search(const Campaign& campaign, const Search& search, std::FILE* to) {
  const SearchResult& found = *campaign.search;
  const auto side = [](const std::optional<double>& rate) {
    return rate ? fmt::format("{:.1f}/s", *rate) : std::string("none seen");
  };
  const std::string answer =
      found.rate ? fmt::format("{:.1f}/s is the highest rate with {} of at most {:g} us",
                               *found.rate, search.percentile, core::to_micros(search.bound))
                 : found.reason;
  fmt::print(to, "Search: {} (met at {}, not met at {}; {} runs)\n", answer, side(found.low),
             side(found.high), found.steps.size());
}

/// Makes the runs. Returns what ended them before their time; empty if nothing did.
std::string make_runs(const Options& options, const Load& load, core::Signals& signals,
                      Results& results, Campaign& campaign) {
  const bool is_one_run = options.repeat == 1 && !options.scan && !options.search;
  try {
    run_campaign(
        options, load, signals, results.observer(),
        [&](const RunResult& result) {
          results.end_run();
          fmt::print(results.text(), "{}",
                     is_one_run ? make_table(result) : make_line(result, options.search));
          std::fflush(results.text());
          for (const auto& fault : result.faults) core::print_error("offload-client", fault);
        },
        campaign);
  } catch (const std::exception& error) {
    return core::what_of(error);
  }
  return {};
}

/// Adds the server's own figures to those of the runs. Returns what went wrong; empty if nothing.
std::string take_server_share(const Options& options, const ServerFigures& before,
                              Campaign& campaign) {
  try {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // a page is up to 100 ms old
    campaign.server = between(before, scrape(options.scrape));
    return {};
  } catch (const std::exception& error) {
    return core::what_of(error);
  }
}

int run(const Options& options, const std::vector<std::string>& command_line,
        core::Signals& signals) {
  cli::start_log("offload-client", options.log);
  Results results(options);
  const Load load(options, signals);  // older results stay if there is something wrong with it
  Campaign campaign;
  std::optional<ServerFigures> before;
  if (!options.scrape.empty()) before = scrape(options.scrape);
  std::string failure = make_runs(options, load, signals, results, campaign);
  if (failure.empty() && before) failure = take_server_share(options, *before, campaign);
  if (failure.empty()) {
    print_estimates(campaign, results.text());
    if (campaign.runs.size() > 1) {
      fmt::print(results.text(), "{}", line("Verification", "{}", verification_of(options)));
    }
    if (campaign.search) print_search(campaign, *options.search, results.text());
    if (campaign.server) fmt::print(results.text(), "{}", make_text(*campaign.server));
    std::fflush(results.text());
  } else {
    core::print_error("offload-client", failure);
  }
  const auto failures = results.write(campaign, command_line, failure);
  for (const auto& each : failures) core::print_error("offload-client", each);
  return failure.empty() && failures.empty() ? status_of(campaign, options) : kFailed;
}

}  // namespace
}  // namespace offload::client

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-client", [&]() -> int {
    core::Signals signals;
    core::raise_descriptor_limit();  // a thread takes two, a connection one
    const auto parsed = client::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    try {
      return client::run(std::get<client::Options>(parsed), {argv, argv + argc}, signals);
    } catch (const client::InvalidInput& error) {
      core::print_error("offload-client", error.what());
      return client::kInvalid;
    } catch (const core::Interrupted&) {
      return client::kInterrupted;
    }
  });
}
