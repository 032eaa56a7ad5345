#include "apps/report/compare/comparison_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "apps/report/compare/comparison.hpp"
#include "apps/report/numbers.hpp"
#include "core/escape.hpp"

namespace offload::report {
namespace {

/// A status of the whole: what was found counts for more than what cannot be told.
int worse(int left, int right) {
  if (left == kFound || right == kFound) return kFound;
  return std::max(left, right);
}

class Reporter {
 public:
  Reporter(const CompareOptions& options, const Side& base, const Side& candidate)
      : options_(options), base_(base), candidate_(candidate) {}

  ComparisonReport run() {
    describe_side("BASE", base_);
    describe_side("NEW ", candidate_);
    report_errors();
    report_untrusted("BASE", base_);
    report_untrusted("NEW", candidate_);
    Comparison comparison = compare(base_.runs(), candidate_.runs());
    if (comparison.unlike.empty()) {
      comparison.unlike = unlike_options(base_.results, candidate_.results);
    }
    if (!comparison.unlike.empty()) comparison.ratios.clear();
    report_pairs(comparison);
    print_ratios(comparison);
    if (!comparison.ratios.empty()) line("");
    for (const Threshold& threshold : thresholds()) report(threshold, comparison);
    if (status_ == kNothingFound) line("nothing found");
    if (status_ == kCannotTell) line("no verdict");
    return {text_, status_};
  }

 private:
  /// Returns those of the command line, else kDefaultThresholds.
  [[nodiscard]] std::vector<Threshold> thresholds() const {
    if (!options_.thresholds.empty()) return options_.thresholds;
    std::vector<Threshold> thresholds;
    for (const char* const each : kDefaultThresholds) thresholds.push_back(*parse_threshold(each));
    return thresholds;
  }
  void line(const std::string& text) {
    text_ += text;
    text_ += '\n';
  }
  void found(const std::string& text) {
    status_ = worse(status_, kFound);
    line(text);
  }
  void cannot_tell(const std::string& text) {
    status_ = worse(status_, kCannotTell);
    line(text);
  }

  void describe_side(const char* title, const Side& side) {
    const std::size_t runs = side.runs().size();
    line(fmt::format("{}  {}: {} {}", title, core::escaped(side.name), runs,
                     runs == 1 ? "run" : "runs"));
  }

  void report_errors() {
    for (const Result& result : candidate_.results) {
      const std::string file = core::escaped(result.file);
      if (result.status == "failed") found(fmt::format("ERRORS: '{}' has failed", file));
      for (const std::string& fault : result.faults) line("  " + core::escaped(fault));
      for (const auto& [kind, count] : errors_of(result)) {
        line(fmt::format("  {}: {}", core::escaped(kind), count));
      }
      if (result.status == "ok" && !result.faults.empty()) {
        found(fmt::format("ERRORS: '{}' has faults", file));
      }
    }
    if (const auto errors = candidate_.error_count(); errors != 0) {
      found(fmt::format("ERRORS: NEW has {}", errors));
    }
    const bool failed = std::ranges::any_of(base_.results, [](const Result& each) {
      return each.status == "failed" || !each.faults.empty();
    });
    if (failed || base_.error_count() != 0) {
      cannot_tell(fmt::format("BASE has errors ({}): it is not a valid base of comparison",
                              base_.error_count()));
    }
  }

  static std::map<std::string, std::uint64_t> errors_of(const Result& result) {
    std::map<std::string, std::uint64_t> errors;
    for (const Run& run : result.runs) {
      for (const auto& [kind, count] : run.errors) errors[kind] += count;
      if (run.unanswered_requests != 0) errors["unanswered"] += run.unanswered_requests;
    }
    return errors;
  }

  [[nodiscard]] static std::ptrdiff_t count_of(const Side& side, std::string_view code) {
    return std::ranges::count_if(side.runs(),
                                 [&](const Run* run) { return verdict_code_of(*run) == code; });
  }

  /// A run whose load was not the one that was asked for is no measurement of the server.
  void report_untrusted(const char* title, const Side& side) {
    const auto runs = side.runs();
    for (const Result& result : side.results) {
      if (result.status != "interrupted") continue;
      cannot_tell(fmt::format("warning: '{}' was interrupted: its last run is shorter",
                              core::escaped(result.file)));
    }
    const auto warning = [&](std::ptrdiff_t count, const char* what) {
      return fmt::format("warning: in {} of {} runs of {} {}", count, runs.size(), title, what);
    };
    const auto warn = [&](std::ptrdiff_t count, const char* what) {
      if (count != 0) cannot_tell(warning(count, what));
    };
    warn(count_of(side, "client_late"),
         "the client itself was late: the latencies are not only those of the server");
    const auto late = count_of(side, "server_late");
    const char* const server_late = "the server was late: the load was not that which was offered";
    if (late != 0 && &side == &candidate_ && count_of(base_, "server_late") == 0) {
      found(warning(late, server_late));  // BASE kept up with the same load
    } else {
      warn(late, server_late);
    }
    warn(count_of(side, "cut_short"), "the run was cut short");
    warn(count_of(side, "too_few"), "there were too few requests for a verdict");
    warn(std::ranges::count_if(runs, [](const Run* run) { return has_few_responses(*run); }),
         "there were fewer than 100 right responses");
  }

  void report_pairs(const Comparison& comparison) {
    const std::size_t pairs = comparison.pairs;
    if (comparison.unpaired != 0) {
      line(
          fmt::format("warning: {} runs have no counterpart and are ignored", comparison.unpaired));
    }
    if (pairs < kFewestPairs) {
      cannot_tell(fmt::format("{} pairs of runs: a verdict needs at least {}, a precise one 10",
                              pairs, kFewestPairs));
      return;
    }
    if (!comparison.unlike.empty()) {
      cannot_tell("the loads differ: " + comparison.unlike);
      return;
    }
    line(fmt::format("{} pairs of runs{}", pairs, comparison.alternated ? ", alternated" : ""));
    if (!comparison.alternated) {
      line(
          "warning: the runs were not alternated: a drift of the machine looks like a difference, "
          "so the noise is at least what BASE differs by");
    }
  }

  void print_ratios(const Comparison& comparison) {
    if (comparison.ratios.empty()) return;
    line(fmt::format("\n{:<22}{:>14}{:>14}{:>8}  {:<16}{:>8}{:>14}", "", "BASE", "NEW", "ratio",
                     "95 % interval", "noise", "BASE differs"));
    for (const Ratio& ratio : comparison.ratios) {
      const auto& [middle, low, high] = ratio.estimate;
      line(fmt::format("{:<22}{:>14}{:>14}{:>8.3f}  {:<16}{:>8}{:>14}", ratio.label,
                       grouped(ratio.base), grouped(ratio.candidate), middle,
                       fmt::format("{:.3f} to {:.3f}", low, high), percent(ratio.noise),
                       percent(ratio.base_range)));
    }
  }

  void report(const Threshold& threshold, const Comparison& comparison) {
    if (threshold.figure.kind == Figure::Kind::errors) {
      report_error_bound(threshold);
      return;
    }
    const auto ratio = std::ranges::find(comparison.ratios, threshold.figure, &Ratio::figure);
    if (ratio != comparison.ratios.end()) {
      report(threshold, *ratio, comparison.pairs);
    } else if (comparison.pairs >= kFewestPairs && comparison.unlike.empty()) {
      cannot_tell(fmt::format("{}: no verdict: at least one run is too short for it, or has 0",
                              threshold.text));
    }
  }

  void report_error_bound(const Threshold& threshold) {
    const auto errors = static_cast<double>(candidate_.error_count());
    const bool beyond = threshold.above ? errors > threshold.bound : errors < threshold.bound;
    if (beyond) found(fmt::format("{}: EXCEEDED: NEW has {} errors", threshold.text, errors));
    if (!beyond) line(fmt::format("{}: not exceeded: {} errors", threshold.text, errors));
  }

  void report(const Threshold& threshold, const Ratio& ratio, std::size_t pairs) {
    const metrics::Estimate& estimate = ratio.estimate;
    const auto say = [&](const char* judgement) {
      return fmt::format("{}: {}: {} has the ratio {:.3f} ({:.3f} to {:.3f})", threshold.text,
                         judgement, ratio.label, estimate.middle, estimate.low, estimate.high);
    };
    const auto needed = [&] {
      const auto count = pairs_needed(threshold, ratio, pairs);
      return count ? fmt::format("about {} alternated repeats of each would be enough", *count)
                   : std::string("no number of repeats would be enough");
    };
    switch (judge(threshold, ratio)) {
      case Judgement::not_exceeded: line(say("not exceeded")); break;
      case Judgement::exceeded: found(say("EXCEEDED")); break;
      case Judgement::noisy:
        cannot_tell(fmt::format(
            "{}: no verdict: the noise of {} is {}, and the threshold is closer to 1; {}",
            threshold.text, ratio.label, percent(ratio.noise), needed()));
        break;
      case Judgement::undecided:
        cannot_tell(say("no verdict") + ", on both sides of the threshold; " + needed());
        break;
    }
  }

  static std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

  const CompareOptions& options_;
  const Side& base_;
  const Side& candidate_;
  std::string text_;
  int status_ = kNothingFound;
};

}  // namespace

ComparisonReport report_comparison(const CompareOptions& options, const Side& base,
                                   const Side& candidate) {
  return Reporter(options, base, candidate).run();
}

}  // namespace offload::report
