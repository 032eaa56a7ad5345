#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/client/load_run.hpp"
#include "apps/client/options.hpp"
#include "apps/client/report.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

namespace offload::client {
namespace {

constexpr int kFailed = 1;
constexpr int kInterrupted = 130;

/// Opened before the run, so that a wrong path shows at once and not after an hour of load.
std::ofstream open_json(const std::string& path) {
  std::ofstream file;
  if (path.empty()) return file;
  file.open(path);
  if (!file) core::throw_errno("cannot write '" + path + "'");
  return file;
}

void write_json(std::ofstream& file, const Options& options, const RunOutcome& outcome) {
  // A fault may quote a server, and a server may send anything: what is no UTF-8 is replaced.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  file << make_json(options, outcome).dump(2, ' ', false, kReplace) << std::endl;
  if (!file) core::throw_errno("cannot write '" + options.json_file + "'");
}

int run(const Options& options, core::ShutdownSignals& signals) {
  core::start_log("offload-client", options.log_level);
  std::ofstream json = open_json(options.json_file);
  const RunOutcome outcome = run_load(options, signals);
  fmt::print("{}", make_table(outcome.statistics));
  std::fflush(stdout);
  for (const auto& fault : outcome.faults) fmt::print(stderr, "offload-client: {}\n", fault);
  if (json.is_open()) write_json(json, options, outcome);
  if (!outcome.faults.empty()) return kFailed;
  return outcome.interrupted ? kInterrupted : 0;
}

}  // namespace
}  // namespace offload::client

int main(int argc, char** argv) {
  using namespace offload;
  try {
    core::ShutdownSignals signals;
    core::raise_descriptor_limit();  // a thread takes three
    const auto parsed = client::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return client::run(std::get<client::Options>(parsed), signals);
  } catch (const std::exception& error) {
    fmt::print(stderr, "offload-client: {}\n", error.what());
    return client::kFailed;
  }
}
