/// bench-gpu-rdma: what it takes to post to a card's queues from a kernel and to see what became of
/// it. Threads of the CPU stand for the card, over pinned memory: so the figures are of the posting
/// side and of PCIe, not of a network.

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/gpu_rdma/measurement.hpp"
#include "bench/program.hpp"
#include "cli/json_file.hpp"
#include "core/error.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::string initiator = "gpu";
  std::string row = "all";
  std::uint32_t groups = 0;  ///< 0: the row's choice, as all below
  std::uint32_t threads = 0;
  std::uint32_t batch = 0;
  std::uint64_t operations = 0;
  LoadOptions load;
  bool signals_last = false;
  std::string output;
};

std::vector<Row> rows_of(bool on_gpu) {
  constexpr std::uint32_t kSms = 132;
  const std::uint32_t groups = on_gpu ? kSms : 2;
  const std::uint32_t threads = on_gpu ? 12 : 1;
  const std::uint64_t share = on_gpu ? 1 : 20;  // a CPU posts as one warp or so
  return {{"post", LoadKind::post, false, groups, 0, 32, 4'000'000 / share},
          {"post-4x", LoadKind::post, false, 4 * groups, 0, 32, 1'000'000 / share},
          {"rate", LoadKind::rate, false, groups, threads, 32, 2'000'000 / share},
          {"one-queue", LoadKind::rate, false, 1, 1, 32, 4'000'000 / share},
          {"shared", LoadKind::rate, true, groups, 1, 32, 100'000 / share},
          {"round-trip", LoadKind::round_trip, false, 1, 1, 1, 200'000 / share},
          {"signal", LoadKind::signal, false, 2, 1, 1, 100'000 / share},
          {"ping-pong", LoadKind::ping_pong, false, 2, 1, 1, 100'000 / share}};
}

/// Applies the options to a row; two groups talk to each other, and a single one stays alone.
void apply(const Options& options, Row& row) {
  const bool has_groups = row.kind == LoadKind::post || row.name == "rate" || row.shares;
  if (options.groups != 0 && has_groups) row.groups = options.groups;
  if (options.threads != 0 && row.name == "rate") row.threads = options.threads;
  if (options.batch != 0 && row.batch != 1) row.batch = options.batch;
  if (options.operations != 0) row.operations = options.operations;
}

int run(const Options& options) {
  cli::JsonFile json(options.output);
  const bool on_gpu = options.initiator == "gpu";
  const auto initiator = on_gpu ? make_gpu_initiator() : make_cpu_initiator();
  if (initiator == nullptr) {
    throw core::Error(core::ErrorCode::not_supported,
                      "this build has no CUDA: use --initiator cpu");
  }
  LoadOptions load = options.load;
  load.signals_each = !options.signals_last;
  load.yields = !on_gpu;
  fmt::print("posted by {}, {} blocks a queue, {}, a completion for each {}\n",
             on_gpu ? "warps of the GPU" : "threads of the CPU", load.blocks,
             load.has_inline ? "28 bytes inline" : "two buffers of 32 bytes",
             load.signals_each ? "entry" : "doorbell");
  fmt::print("{:<12} {:>7} {:>8} {:>9} {:>12} {:>12}\n", "row", "groups", "threads", "doorbell",
             "M entries/s", "ns a round");
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (Row row : rows_of(on_gpu)) {
    if (options.row != "all" && options.row != row.name) continue;
    apply(options, row);
    const Measured measured = measure(*initiator, row, load);
    fmt::print("{:<12} {:>7} {:>8} {:>9} {:>12.2f} {:>12.0f}\n", row.name, row.groups, row.threads,
               row.batch, measured.rate / 1e6, measured.ns_a_round);
    std::fflush(stdout);
    results.push_back({{"row", row.name},
                       {"groups", row.groups},
                       {"threads", row.threads},
                       {"entries_a_doorbell", row.batch},
                       {"rate_per_s", measured.rate},
                       {"ns_a_round", measured.ns_a_round}});
  }
  json.write({{"initiator", options.initiator},
              {"blocks", load.blocks},
              {"inline", load.has_inline},
              {"signals_each", load.signals_each},
              {"results", results}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  cli::add_choice(line, "--initiator", options.initiator, {"gpu", "cpu"},
                  "Post from threads (cpu) or from a kernel (gpu)");
  cli::add_choice(line, "--row", options.row,
                  {"all", "post", "post-4x", "rate", "one-queue", "shared", "round-trip", "signal",
                   "ping-pong"},
                  "Measure this");
  cli::add_integer<std::uint32_t>(
      line, "--groups", options.groups, 0, 4096,
      "Post from this number of warps or threads, in rows with several; 0: the number of the row");
  cli::add_integer<std::uint32_t>(
      line, "--threads", options.threads, 0, 256,
      "Emulate the card with this number of threads, for rate; 0: the number of the row");
  cli::add_integer<std::uint32_t>(line, "--batch", options.batch, 0, 512,
                                  "Post this number of entries with one doorbell, in rows with "
                                  "several; 0: the number of the row");
  cli::add_integer<std::uint64_t>(
      line, "--operations", options.operations, 0, 1'000'000'000,
      "Post this number of entries from each group; 0: the number of the row");
  cli::add_integer<std::uint32_t>(line, "--blocks", options.load.blocks, 16, 32768,
                                  "Give a send queue this number of blocks, a power of two");
  cli::add_flag(line, "--inline", options.load.has_inline, "Send 28 bytes inline in the entry");
  cli::add_flag(line, "--signal-last", options.signals_last,
                "Request a completion only for the last entry of a doorbell");
  cli::add_time(line, "--limit", options.load.limit, std::chrono::milliseconds(1),
                "Limit each wait to this time, after which the kernel ends");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(
      argc, argv, "bench-gpu-rdma",
      "Measures how a kernel posts to queues in the formats of mlx5, and takes completions.",
      declare, run);
}
