#include "apps/client/experiment/question.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "apps/client/experiment/slices.hpp"
#include "apps/client/report/result_json.hpp"
#include "apps/client/report/table.hpp"
#include "apps/client/run/campaign.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"

namespace offload::client {
namespace {

using Verdict = Answer::Verdict;
using Words = std::vector<std::string>;

constexpr auto kProbeGap = std::chrono::milliseconds(50);

/// Returns the target's name as tables and sentences have it: "BASE", "NEW".
std::string title_of(const std::string& name) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return title;
}

std::string result_of(const Options& options, const Campaign& campaign, const Words& command_line,
                      const std::string& failure) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return make_json(options, campaign, command_line, failure).dump(-1, ' ', false, kReplace);
}

/// Returns the same load as one request on one connection.
Options probe_of(Options options, core::Duration limit) {
  options.rate.reset();
  options.schedule.clear();
  options.duration.reset();
  options.warmup = {};
  options.iteration_count = 1;
  options.thread_count = options.connections = options.max_concurrent_messages = 1;
  options.count_errors = false;
  options.connect_timeout = std::min(options.connect_timeout, limit);
  return options;
}

/// Sends one request. Returns what was wrong, empty if nothing.
std::string probe(const Options& options, core::Signals& signals, bool& interrupted) {
  try {
    const Load load(options, signals);
    const RunResult result =
        run_load(options, {std::nullopt, options.max_concurrent_messages}, load, signals, {});
    interrupted = result.interrupted;
    if (!result.has_errors()) return {};
    return result.faults.empty() ? "an error" : result.faults.front();
  } catch (const core::Error& error) {
    return error.what();
  }
}

// ---- compare

/// Runs the pairs of a comparison.
class PairRunner {
 public:
  PairRunner(const Experiment& experiment, const ExperimentLoad& load, core::Signals& signals)
      : experiment_(experiment),
        base_(options_of(experiment, experiment.targets[0], load), signals),
        new_(options_of(experiment, experiment.targets[1], load), signals),
        comparison_(experiment.rules) {}

  Answer run() {
    std::mt19937_64 random(experiment_.seed);
    const auto end = core::Clock::now() + experiment_.time;
    for (std::uint64_t number = 0; core::Clock::now() < end; ++number) {
      const bool new_first = random() >> 63U != 0;
      if (Answer answer = run_pair(number, new_first); !answer.sentence.empty()) {
        return answer;
      }
      if (comparison_.is_known()) break;
    }
    return comparison_.answer(base_.counts(), new_.counts());
  }

  Compared take_compared() {
    Compared compared;
    for (std::size_t i = 0; i < kSliceFigures; ++i) {
      const auto figure = static_cast<SliceFigure>(i);
      if (comparison_.pairs_of(figure) == 0) continue;
      const auto median = [&](SliceFigures SlicePair::*side) {
        std::vector<double> values;
        for (const SlicePair& pair : pairs_) values.push_back((pair.*side).us[i]);
        return metrics::estimate_median(values).middle;
      };
      compared.rows.push_back({figure, figure == experiment_.rules.figure,
                               comparison_.pairs_of(figure), median(&SlicePair::base),
                               median(&SlicePair::compared), comparison_.ratio(figure)});
    }
    compared.pairs = std::move(pairs_);
    compared.base = base_.counts();
    compared.compared_counts = new_.counts();
    return compared;
  }

  /// Adds the sums of the slices of both targets.
  void add_results(const Words& command_line, LoadAnswer& answer) {
    for (SliceRunner* const each : {&base_, &new_}) {
      Campaign campaign;
      campaign.runs.push_back(each->take_sum());
      answer.results.emplace_back(each == &base_ ? "base" : "new",
                                  result_of(each->options(), campaign, command_line, {}));
    }
  }

 private:
  /// Returns an answer without a sentence if the comparison goes on.
  Answer run_pair(std::uint64_t number, bool new_first) {
    std::array<Slice, 2> slices;  // BASE, NEW
    for (const bool is_new : {new_first, !new_first}) {
      Slice& slice = slices[is_new ? 1 : 0];
      std::string fault = "errors; see the result";
      try {
        slice = (is_new ? new_ : base_).run(number);
        if (!slice.fault.empty()) fault = slice.fault;
      } catch (const core::Error& error) {
        slice.failed = true;
        fault = error.what();
      }
      if (slice.interrupted) return {Verdict::interrupted, "interrupted: cannot be told"};
      if (!slice.failed) continue;
      if (is_new) return {Verdict::failed, "NEW failed: " + fault};
      return {Verdict::cannot_tell, "cannot be told: BASE failed: " + fault};
    }
    if (slices[0].client_late || slices[1].client_late) return {};
    pairs_.push_back({new_first, slices[0].figures, slices[1].figures});
    comparison_.add(slices[0].figures, slices[1].figures);
    return {};
  }

  const Experiment& experiment_;
  SliceRunner base_;
  SliceRunner new_;
  PairedComparison comparison_;
  std::vector<SlicePair> pairs_;
};

std::string table_of(const Experiment& experiment, const LoadAnswer& answer) {
  const Compared& compared = *answer.compared;
  std::string text = fmt::format(
      "{} pairs of slices of {} in {:.1f} s; the order of each is drawn with seed {}\n"
      "{:<24}{:>14}{:>14}{:>9}  {}\n",
      compared.pairs.size(), cli::shown(experiment.slice), answer.seconds, experiment.seed, "",
      "BASE", "NEW", "ratio", "interval");
  for (const auto& row : compared.rows) {
    const bool is_rate = row.figure == SliceFigure::per_answer;
    const std::string name = fmt::format(
        "{} ({}){}", is_rate ? "time per answer" : kSliceFigureNames[static_cast<int>(row.figure)],
        "us", row.decides ? " decides" : "");
    text += fmt::format("{:<24}{:>14.3f}{:>14.3f}{:>9.4f}  {:.4f} to {:.4f}\n", name, row.base,
                        row.compared, row.ratio.middle, row.ratio.low, row.ratio.high);
  }
  return text;
}

void compare(const Experiment& experiment, const ExperimentLoad& load, const Words& command_line,
             core::Signals& signals, const Print& print, LoadAnswer& answer) {
  PairRunner runner(experiment, load, signals);
  const auto begin = core::Clock::now();
  answer.answer = runner.run();
  answer.seconds = core::to_seconds(core::Clock::now() - begin);
  answer.compared = runner.take_compared();
  runner.add_results(command_line, answer);
  print(table_of(experiment, answer));
}

// ---- search, curve, soak

/// Returns the median of some seconds' p99, 0 without any.
double median_p99(std::vector<results::RunInterval>::const_iterator begin,
                  std::vector<results::RunInterval>::const_iterator end) {
  std::vector<double> values;
  for (auto each = begin; each != end; ++each) {
    values.push_back((each->response_time_us && each->response_time_us->p99 > 0
                          ? *each->response_time_us
                          : each->service_time_us)
                         .p99);
  }
  return metrics::estimate_median(values).middle;
}

/// Returns what the runs of one target answer.
Answer answer_of(const Experiment& experiment, const Options& options, const Campaign& campaign) {
  using enum LoadVerdict::Code;
  if (campaign.interrupted()) return {Verdict::interrupted, "interrupted"};
  if (options.search) {
    const SearchResult& found = *campaign.search;
    const bool is_answer =
        found.end == SearchEnd::lowest_fails || found.end == SearchEnd::interrupted;
    if (!found.rate) return {is_answer ? Verdict::failed : Verdict::cannot_tell, found.reason};
    return {Verdict::answered,
            fmt::format("{:.1f}/s is the highest rate with {} of at most {:g} us", *found.rate,
                        options.search->percentile, core::to_micros(options.search->bound))};
  }
  for (const RunResult& run : campaign.runs) {
    if (!run.has_errors()) continue;
    return {Verdict::failed, run.faults.empty() ? "errors: " + errors_of(run) : run.faults.front()};
  }
  const auto count = [&](LoadVerdict::Code code) {
    return std::ranges::count(campaign.runs, code,
                              [](const auto& run) { return run.verdict.code; });
  };
  if (const auto late = count(client_late); late != 0) {
    return {Verdict::cannot_tell,
            fmt::format("this client was late in {} of {} runs", late, campaign.runs.size())};
  }
  if (experiment.question == Question::curve) {
    const auto few = count(too_few);
    return {
        Verdict::answered,
        fmt::format("{} runs without errors, the server kept up in all but {}{}",
                    campaign.runs.size(), count(server_late),
                    few == 0 ? std::string()
                             : fmt::format(", and {} had too few requests for a verdict", few))};
  }
  const RunResult& run = campaign.runs.back();
  if (run.verdict.code == server_late) return {Verdict::failed, run.verdict.text};
  if (run.verdict.code == too_few) return {Verdict::cannot_tell, run.verdict.text};
  return {Verdict::answered, soak_text(run)};
}

/// Runs offload-client's own runs against one target.
Answer run_target(const Options& options, const Experiment& experiment, const Words& command_line,
                  core::Signals& signals, const Print& print, std::string& result) {
  Campaign campaign;
  std::string failure;
  try {
    const Load load(options, signals);
    run_campaign(
        options, load, signals, {}, [&](const RunResult& run) { print(make_line(run)); }, campaign);
  } catch (const core::Error& error) {
    failure = error.what();
  }
  result = result_of(options, campaign, command_line, failure);
  return failure.empty() ? answer_of(experiment, options, campaign)
                         : Answer{Verdict::failed, failure};
}

void run_targets(const Experiment& experiment, const ExperimentLoad& load,
                 const Words& command_line, const std::string& folder, core::Signals& signals,
                 const Print& print, LoadAnswer& answer) {
  std::vector<LoadAnswer> parts;
  const auto begin = core::Clock::now();
  for (const ExperimentTarget& target : experiment.targets) {
    LoadAnswer& part = parts.emplace_back();
    part.load = experiment.targets.size() == 1 ? "" : title_of(target.name);
    if (!part.load.empty()) print(part.load + "\n");
    std::string result;
    part.answer =
        experiment.hosts.empty()
            ? run_target(options_of(experiment, target, load), experiment, command_line, signals,
                         print, result)
            : run_on_hosts(experiment, target, load, folder, signals, answer.clocks, result);
    if (!result.empty()) answer.results.emplace_back(target.name, result);
    if (part.answer.verdict == Verdict::interrupted) break;
  }
  answer.seconds = core::to_seconds(core::Clock::now() - begin);
  answer.answer = answer_of(parts);
}

}  // namespace

std::string soak_text(const RunResult& run) {
  std::string text = fmt::format("no errors in {} answers in {:.1f} s", run.total->answered,
                                 core::to_seconds(run.duration));
  const auto part = std::ssize(run.seconds) / 10;
  if (part == 0) return text;
  const double first = median_p99(run.seconds.begin(), run.seconds.begin() + part);
  const double last = median_p99(run.seconds.end() - part, run.seconds.end());
  if (first <= 0) return text;
  return text + fmt::format("; p99 of the last tenth is {:.2f} of that of the first", last / first);
}

std::vector<TargetProcess> start_targets(const Experiment& experiment, const std::string& folder) {
  std::vector<TargetProcess> processes;
  for (const ExperimentTarget& target : experiment.targets) {
    int number = 0;
    for (const std::string& command : target.start) {
      processes.emplace_back(command, fmt::format("{}/{}-{}.log", folder, target.name, ++number));
    }
  }
  return processes;
}

bool wait_for_targets(const Experiment& experiment, std::vector<TargetProcess>& processes,
                      core::Signals& signals) {
  for (const ExperimentTarget& target : experiment.targets) {
    const auto limit = core::Clock::now() + experiment.start_limit;
    const Options options =
        probe_of(options_of(experiment, target, experiment.loads.front()), experiment.start_limit);
    for (bool interrupted = false;;) {
      const std::string wrong = probe(options, signals, interrupted);
      if (interrupted) return false;
      for (TargetProcess& process : processes) {
        if (process.is_running()) continue;
        throw core::Error(
            core::ErrorCode::bad_state,
            fmt::format("'{}' has ended: see '{}'", process.command(), process.log()));
      }
      if (wrong.empty()) break;
      if (target.start.empty() || core::Clock::now() >= limit) {
        throw core::Error(core::ErrorCode::timed_out,
                          title_of(target.name) + " does not answer a first request: " + wrong);
      }
      std::this_thread::sleep_for(kProbeGap);
    }
  }
  return true;
}

LoadAnswer ask(const Experiment& experiment, const ExperimentLoad& load, const Words& command_line,
               const std::string& folder, core::Signals& signals, const Print& print) {
  LoadAnswer answer;
  answer.load = load.name;
  if (experiment.question == Question::compare) {
    compare(experiment, load, command_line, signals, print, answer);
  } else {
    run_targets(experiment, load, command_line, folder, signals, print, answer);
  }
  return answer;
}

Answer answer_of(const std::vector<LoadAnswer>& answers) {
  using enum Answer::Verdict;
  constexpr std::array kFromBestToWorst = {answered, faster,      equal, cannot_tell,
                                           slower,   interrupted, failed};
  const auto severity = [&](Verdict verdict) {
    return std::ranges::find(kFromBestToWorst, verdict) - kFromBestToWorst.begin();
  };
  Answer whole;
  for (const LoadAnswer& each : answers) {
    if (severity(each.answer.verdict) > severity(whole.verdict))
      whole.verdict = each.answer.verdict;
    whole.sentence += (whole.sentence.empty() ? "" : "; ") +
                      (each.load.empty() ? "" : each.load + ": ") + each.answer.sentence;
  }
  return whole;
}

}  // namespace offload::client
