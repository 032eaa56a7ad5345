#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "apps/client/load_run.hpp"
#include "apps/client/options.hpp"
#include "apps/client/report.hpp"
#include "cli/json_file.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

namespace offload::client {
namespace {

constexpr int kFailed = 1;
constexpr int kInterrupted = 130;

int run(const Options& options, core::Signals& signals) {
  core::start_log("offload-client", options.log_level);
  cli::JsonFile json(options.json_file);
  const RunOutcome outcome = run_load(options, signals);
  fmt::print("{}", make_table(outcome.statistics));
  std::fflush(stdout);
  for (const auto& fault : outcome.faults) core::print_error("offload-client", fault);
  json.write(make_json(options, outcome));
  if (!outcome.faults.empty()) return kFailed;
  return outcome.interrupted ? kInterrupted : 0;
}

}  // namespace
}  // namespace offload::client

int main(int argc, char** argv) {
  using namespace offload;
  try {
    core::Signals signals;
    core::raise_descriptor_limit();  // a thread takes two, a connection one
    const auto parsed = client::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return client::run(std::get<client::Options>(parsed), signals);
  } catch (const std::exception& error) {
    core::print_error("offload-client", error.what());
    return client::kFailed;
  }
}
