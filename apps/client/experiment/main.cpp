#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/client/experiment/answer_files.hpp"
#include "cli/json_file.hpp"
#include "cli/log_options.hpp"
#include "cli/options.hpp"
#include "core/exit_status.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"

namespace offload::client {
namespace {

constexpr const char* kProgramName = "offload-bench";

constexpr const char* kBenchDescription =
    "Answers a question about servers: is NEW slower than BASE, what is the highest rate, how "
    "does\n"
    "latency grow with the rate, does the server last? The file of the experiment has the "
    "targets,\n"
    "which can be started and ended, the loads, as options of offload-client, and the question.";

constexpr const char* kBenchFooter =
    "\nThe file is TOML: question = \"compare\", \"search\", \"curve\" or \"soak\"; the tables "
    "[base] "
    "and\n[new] with address = \"HOST:PORT\" and start = [COMMAND, ...]; and [[load]] with options "
    "of\n"
    "offload-client.\n\n"
    "Exit status: 0 NEW is equal or faster, or the question is answered; 1 NEW is slower, or there "
    "are\nerrors; 2 an invalid command line or file; 3 it cannot be told; 130 stopped by SIGINT or "
    "SIGTERM.\n\n"
    "Example:\n"
    "  offload-bench compare.toml -o answer.json --junit answer.xml";

struct BenchOptions {
  std::string experiment;
  std::string output;  ///< empty: none
  std::string junit;   ///< empty: none
  std::string logs = "offload-bench-logs";
  cli::LogOptions log{};
};

std::variant<BenchOptions, cli::Leave> parse_bench_options(int argc, const char* const* argv) {
  BenchOptions options;
  options.log.level = "warning";
  cli::CommandLine line(kProgramName, kBenchDescription, kBenchFooter);
  cli::add_text(line, "EXPERIMENT", options.experiment, "Read the experiment from this file, TOML")
      .required();
  cli::add_text(line, "-o,--output FILE", options.output,
                "Write the answer with all results to this file, as JSON; - is standard output. "
                "Default: none");
  cli::add_text(line, "--junit FILE", options.junit,
                "Write the answer to this file for CI, as JUnit's XML. Default: none");
  cli::add_text(line, "--logs FOLDER", options.logs,
                "Keep the output of the commands that are started in this folder");
  cli::add_log_options(line, options.log);
  if (auto leave = line.parse(argc, argv)) return *leave;
  return options;
}

/// The outputs; files are checked before anything is started.
class BenchFiles {
 public:
  explicit BenchFiles(const BenchOptions& options)
      : json_(options.output, kProgramName),
        junit_(options.junit, "--junit", "<testsuite name=\"offload-bench\"") {}

  void print(const std::string& text) {
    std::FILE* const to = json_.is_standard_output() ? stderr : stdout;
    fmt::print(to, "{}", text);
    std::fflush(to);
  }
  void write(const Experiment& experiment, const ExperimentOutcome& outcome,
             const std::vector<std::string>& command_line) {
    json_.write(json_of(experiment, outcome, command_line));
    if (junit_.wanted()) junit_.write(junit_of(experiment, outcome));
  }

 private:
  cli::JsonFile json_;
  cli::OutputFile junit_;
};

/// Asks about all loads. Throws Error.
void ask_all(const Experiment& experiment, const BenchOptions& options,
             const std::vector<std::string>& command_line, core::Signals& signals,
             BenchFiles& files, ExperimentOutcome& outcome) {
  std::filesystem::create_directories(options.logs);
  auto processes = start_targets(experiment, options.logs);
  if (!wait_for_targets(experiment, processes, signals)) {
    outcome.answer = {Answer::Verdict::interrupted, "interrupted before the first load"};
    return;
  }
  for (const ExperimentLoad& load : experiment.loads) {
    if (!load.name.empty()) files.print(fmt::format("load {}\n", load.name));
    outcome.loads.push_back(ask(experiment, load, command_line, options.logs, signals,
                                [&](const std::string& text) { files.print(text); }));
    if (outcome.loads.back().answer.verdict == Answer::Verdict::interrupted) break;
  }
  outcome.answer = answer_of(outcome.loads);
}

int bench(const BenchOptions& options, const std::vector<std::string>& command_line,
          core::Signals& signals) {
  cli::start_log(kProgramName, options.log);
  Experiment experiment;
  try {
    experiment = read_experiment(options.experiment);
  } catch (const core::Error& error) {
    core::print_error(kProgramName, error.what());
    return cli::kUsageError;
  }
  BenchFiles files(options);
  ExperimentOutcome outcome;
  outcome.file = options.experiment;
  const auto begin = core::Clock::now();
  try {
    ask_all(experiment, options, command_line, signals, files, outcome);
  } catch (const std::exception& error) {
    outcome.answer = {Answer::Verdict::failed, error.what()};
  }
  outcome.seconds = core::to_seconds(core::Clock::now() - begin);
  files.write(experiment, outcome, command_line);
  files.print(outcome.answer.sentence + "\n");
  return status_of(outcome.answer.verdict);
}

}  // namespace
}  // namespace offload::client

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-bench", [&] {
    core::Signals signals;
    core::raise_descriptor_limit();
    const auto parsed = client::parse_bench_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return client::bench(std::get<client::BenchOptions>(parsed), {argv, argv + argc}, signals);
  });
}
