/// bench-rdma-emulator-gpu: a kernel posts to queues in pinned memory, and emulators of one thread
/// carry out what it posts, on a device that has done it at once.

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "bench/program.hpp"
#include "bench/rdma_emulator/emulators.hpp"
#include "bench/rdma_emulator/initiate.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::uint32_t queues = 64;
  std::uint32_t run = 32;
  std::uint32_t rounds = 20'000;
  std::string output;
};

/// Looks of a kernel without a completion, a microsecond each at least.
constexpr std::uint64_t kPatience = 20'000'000;
constexpr core::Duration kLimit = std::chrono::seconds(120);

/// Returns the time that the kernel and the emulators take for it.
core::Duration time_of(std::uint32_t count, const Initiation& work) {
  const std::uint32_t depth = std::max(4 * work.run, 16U);
  const std::size_t lines = lines_of(count, depth);
  gpu::PinnedArray<QueueLine> memory(lines);
  Emulators emulators({memory.get(), lines}, count, depth);
  gpu::PinnedArray<kernels::rdma::SendQueue> queues(count);
  for (std::uint32_t i = 0; i < count; ++i) queues.get()[i] = emulators.queues[i].send;
  gpu::PinnedArray<std::uint64_t> completed(count);
  gpu::CudaStream stream;
  const auto begin = core::Clock::now();
  gpu::check_cuda(launch_initiate(queues.get(), count, work, completed.get(), stream.get()),
                  "launch");
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady && core::Clock::now() - begin < kLimit) {
    for (int i = 0; i < 256; ++i) emulators.engine.progress();
    state = stream.query();
  }
  const auto spent = core::Clock::now() - begin;
  gpu::check_cuda(state, "the kernel");
  const auto all = std::span(completed.get(), count);
  if (std::any_of(all.begin(), all.end(), [&](auto each) { return each != work.rounds; })) {
    throw core::Error(core::ErrorCode::unexpected, "completions are missing, or are errors");
  }
  return spent;
}

int run(const Options& options) {
  cli::JsonFile json(options.output);
  time_of(1, {1, 10, 1, kPatience});  // the kernel is loaded
  const auto trips = time_of(1, {1, options.rounds, 1, kPatience});
  const double trip = core::to_micros(trips) / options.rounds;
  const auto one = time_of(1, {options.run, options.rounds, 2, kPatience});
  const auto many = time_of(options.queues, {options.run, options.rounds, 2, kPatience});
  const double entries = double(options.run) * options.rounds;
  const double of_one = entries / core::to_seconds(one) / 1e6;
  const double of_many = entries * options.queues / core::to_seconds(many) / 1e6;
  fmt::print("one entry there and back: {:.2f} us, mean of {}\n", trip, options.rounds);
  fmt::print("runs of {}: one queue {:.1f} M entries/s, {} queues {:.1f} M\n", options.run, of_one,
             options.queues, of_many);
  json.write({{"round_trip_mean_us", trip},
              {"run", options.run},
              {"one_queue_m_s", of_one},
              {"queues", options.queues},
              {"entries_m_s", of_many}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  cli::add_integer<std::uint32_t>(line, "--queues", options.queues, 1, 1024, "Queues");
  cli::add_integer<std::uint32_t>(line, "--run", options.run, 1, 1024,
                                  "Post this number of entries with one doorbell, a power of two");
  cli::add_integer<std::uint32_t>(line, "--rounds", options.rounds, 1, 10'000'000,
                                  "Post this number of runs on each queue");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(
      argc, argv, "bench-rdma-emulator-gpu",
      "Measures a kernel that posts, and an emulator on a device that carries nothing out.",
      declare, run);
}
