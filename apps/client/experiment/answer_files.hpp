#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/client/experiment/question.hpp"

namespace offload::client {

/// An experiment's outcome.
struct ExperimentOutcome {
  std::string file;
  Answer answer;  ///< of all loads
  std::vector<LoadAnswer> loads;
  double seconds = 0;
};

/// The outcome as JSON, format 1 of offload-bench, which docs/reference/experiments.md describes.
nlohmann::ordered_json json_of(const Experiment& experiment, const ExperimentOutcome& outcome,
                               const std::vector<std::string>& command_line);

/// The outcome for CI, as JUnit's XML: a test case for each load. "slower" and errors are failures;
/// what cannot be told is an error.
std::string junit_of(const Experiment& experiment, const ExperimentOutcome& outcome);

}  // namespace offload::client
