#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/experiment/answer.hpp"
#include "apps/client/experiment/experiment.hpp"
#include "apps/client/experiment/hosts.hpp"
#include "apps/client/experiment/paired_comparison.hpp"
#include "apps/client/experiment/target_process.hpp"
#include "apps/client/run/run_result.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// A pair of slices of a comparison.
struct SlicePair {
  bool new_first = false;
  SliceFigures base;
  SliceFigures compared;
};

/// The measurements of a comparison, for its report.
struct Compared {
  /// One figure of all pairs.
  struct Row {
    SliceFigure figure{};
    bool decides = false;
    std::size_t pairs = 0;
    double base = 0;  ///< medians of the slices, microseconds
    double compared = 0;
    metrics::Estimate ratio;
  };
  std::vector<SlicePair> pairs;
  std::vector<Row> rows;
  SliceCounts base;
  SliceCounts compared_counts;
};

/// The answer for one load.
struct LoadAnswer {
  std::string load;
  Answer answer;
  double seconds = 0;  ///< the time it took
  std::optional<Compared> compared;
  std::vector<HostClock> clocks;  ///< of hosts that took part
  /// Results of offload-client, format 1 as JSON, with the names of their targets.
  std::vector<std::pair<std::string, std::string>> results;
};

/// Prints a text for people, which ends its lines.
using Print = std::function<void(const std::string&)>;

/// Starts the commands of all targets; their output goes to files in `folder`. Throws Error.
std::vector<TargetProcess> start_targets(const Experiment& experiment, const std::string& folder);

/// Waits until each target gives a right answer to one request of the first load. Returns false if
/// a signal came first. Throws Error if a target does not, or if one of `processes` ends.
bool wait_for_targets(const Experiment& experiment, std::vector<TargetProcess>& processes,
                      core::Signals& signals);

/// Asks the experiment's question with one of its loads. A fault of a target is in the answer.
/// `folder`: for the outputs of clients on several hosts.
LoadAnswer ask(const Experiment& experiment, const ExperimentLoad& load,
               const std::vector<std::string>& command_line, const std::string& folder,
               core::Signals& signals, const Print& print);

/// Returns the sentence of a soak: its answers, and how its end differs from its begin.
std::string soak_text(const RunResult& run);

/// Returns the answer for all loads: the worst verdict, and the sentence of each.
Answer answer_of(const std::vector<LoadAnswer>& answers);

}  // namespace offload::client
