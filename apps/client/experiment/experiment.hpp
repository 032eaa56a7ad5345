#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/experiment/paired_comparison.hpp"
#include "apps/client/options.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The question of an experiment. kQuestionNames has the names in files.
enum class Question : std::uint8_t { compare, search, curve, soak };
inline constexpr const char* kQuestionNames[] = {"compare", "search", "curve", "soak"};

/// A server to load.
struct ExperimentTarget {
  std::string name;  ///< "base" or "new"
  std::string address;
  std::string port;
  std::vector<std::string> start;  ///< commands of a shell that serve it; empty: it is there
};

/// A load as options of offload-client.
struct ExperimentLoad {
  std::string name;
  std::vector<std::string> words;  ///< "--size=64", ...
  std::string place;               ///< "FILE:LINE:COLUMN"
};

/// The file of an experiment, checked. docs/reference/experiments.md says what each key means.
struct Experiment {
  Question question = Question::compare;
  core::Duration time = std::chrono::seconds(60);        ///< of each load
  core::Duration slice = std::chrono::milliseconds(80);  ///< compare: of each measurement
  core::Duration settle = std::chrono::milliseconds(5);  ///< before each slice, not measured
  core::Duration start_limit = std::chrono::seconds(30);
  ComparisonRules rules;
  std::uint64_t seed = 1;
  std::vector<std::string> hosts;  ///< soak: where clients run; empty: in this process
  std::vector<ExperimentTarget> targets;
  std::vector<ExperimentLoad> loads;
};

/// Reads a file. Throws Error of one line, which begins with the place.
Experiment read_experiment(const std::string& path);

/// Returns the words of offload-client's command line for a load on a target, without the program.
std::vector<std::string> words_of(const Experiment& experiment, const ExperimentTarget& target,
                                  const ExperimentLoad& load);

/// Returns the same as options. Throws Error.
Options options_of(const Experiment& experiment, const ExperimentTarget& target,
                   const ExperimentLoad& load);

}  // namespace offload::client
