#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/rdma_tasks/benchmark.hpp"
#include "apps/rdma_tasks/bring_up/bring_up.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "apps/rdma_tasks/rendezvous.hpp"
#include "apps/rdma_tasks/report.hpp"
#include "apps/rdma_tasks/shared_pool.hpp"
#include "cli/json_file.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

namespace offload::rdma_tool {
namespace {

constexpr int kInterrupted = 130;

int run(const Options& options, core::Signals& signals) {
  cli::start_log("offload-rdma", options.log);
  cli::JsonFile json(options.output, "offload-rdma");
  Environment environment(options, signals, Endpoint::completions(options) * options.connections);
  std::optional<SharedPool> shared;
  if (options.shared_receives) shared.emplace(environment, options);
  Endpoints endpoints;
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    endpoints.push_back(
        std::make_unique<Endpoint>(environment, options, i, shared ? &*shared : nullptr));
  }
  std::optional<Rendezvous> rendezvous;
  if (!is_alone(options.operation)) rendezvous.emplace(environment, options, endpoints);
  for (const auto& endpoint : endpoints) {
    rendezvous ? endpoint->exchange_hello() : endpoint->connect_to_itself();
  }

  std::vector<BenchmarkResult> results;
  for (const std::uint32_t size : options.sizes) {
    for (const Variant& variant : variants_of(options)) {
      results.push_back(Benchmark(environment, options, endpoints, size, variant).run());
    }
  }
  environment.close();
  if (rendezvous) {
    for (const auto& endpoint : endpoints) endpoint->sync();
  }

  const std::string device = environment.device().name();
  const std::string initiator = environment.initiator();
  fmt::print("{}", make_table(options, device, initiator, results));
  std::fflush(stdout);
  json.write(make_json(options, device, initiator, results));
  return 0;
}

int bring_up(int argc, const char* const* argv, core::Signals& signals) {
  const auto parsed = parse_bring_up_options(argc, argv);
  if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
  const auto& options = std::get<BringUpOptions>(parsed);
  cli::start_log("offload-rdma", options.run.log);
  const auto show = [](const StepFinding& finding) {
    fmt::print("{}", make_text(finding));
    std::fflush(stdout);
  };
  return is_ready(BringUp(options, signals, show).run()) ? 0 : 1;
}

int run(int argc, const char* const* argv, core::Signals& signals) {
  if (argc > 1 && std::string_view(argv[1]) == kBringUp) {
    return bring_up(argc - 1, argv + 1, signals);
  }
  const auto parsed = parse_options(argc, argv);
  if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
  return run(std::get<Options>(parsed), signals);
}

}  // namespace
}  // namespace offload::rdma_tool

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-rdma", [&] {
    core::Signals signals;
    try {
      return rdma_tool::run(argc, argv, signals);
    } catch (const core::Interrupted&) {
      core::print_error("offload-rdma", "interrupted");
      return rdma_tool::kInterrupted;
    }
  });
}
