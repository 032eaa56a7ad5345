/// bench-rdma-emulator: what an emulator itself takes, on a device that carries nothing out:
/// entries that one thread takes over from many queues, and what it adds to a work request that a
/// thread posts.

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "bench/program.hpp"
#include "bench/rdma_emulator/emulators.hpp"
#include "bench/rdma_emulator/owner.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::uint32_t queues = 64;
  std::uint32_t run = 32;
  std::uint32_t rounds = 2'000;
  std::string output;
};

constexpr core::Duration kLimit = std::chrono::seconds(60);

/// Queues of host memory, with their emulators and the states of their owners.
struct Queues {
  Queues(std::uint32_t count, std::uint32_t depth)
      : memory(lines_of(count, depth)), emulators(memory, count, depth) {
    for (const auto& queue : emulators.queues) owners.emplace_back(queue.send);
  }
  std::vector<QueueLine> memory;
  Emulators emulators;
  std::vector<Owner> owners;
};

/// Entries a second of the emulators' turns alone: what is posted is there before they begin.
double turns_alone(const Options& options, bool all_signaled) {
  Queues queues(options.queues, 4 * options.run);
  core::Duration spent{};
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (auto& owner : queues.owners) owner.post_run(options.run, all_signaled);
    const auto begin = core::Clock::now();
    while (queues.emulators.engine.progress()) continue;
    spent += core::Clock::now() - begin;
    for (auto& owner : queues.owners) {
      if (owner.poll() != (all_signaled ? options.run : 1)) {
        throw core::Error(core::ErrorCode::unexpected, "a completion is missing");
      }
    }
  }
  return double(options.queues) * options.run * options.rounds / core::to_seconds(spent);
}

/// Entries a second while another thread posts to all queues and polls them.
double beside_their_owner(const Options& options) {
  Queues queues(options.queues, 4 * options.run);
  const std::uint64_t runs = std::uint64_t{options.queues} * options.rounds;
  std::atomic<bool> done{false};
  const auto begin = core::Clock::now();
  std::thread owner([&] {
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    while (completed < runs && core::Clock::now() - begin < kLimit) {
      for (auto& each : queues.owners) {
        completed += each.poll();
        // Two runs may be in progress; the ring has room for four.
        if (posted < runs && each.under_way() < 2 * options.run) {
          each.post_run(options.run, false);
          ++posted;
        }
      }
    }
    done.store(completed == runs, std::memory_order_release);  // pairs with the load below
    queues.emulators.engine.notify();
  });
  while (!done.load(std::memory_order_acquire) && core::Clock::now() - begin < kLimit) {
    for (int i = 0; i < 64; ++i) queues.emulators.engine.progress();
  }
  const auto spent = core::Clock::now() - begin;
  owner.join();
  if (!done) throw core::Error(core::ErrorCode::timed_out, "completions are missing");
  return double(runs) * options.run / core::to_seconds(spent);
}

/// Returns the times from the post of one entry to its completion; the emulator is on another
/// thread.
std::unique_ptr<metrics::LatencyHistogram> round_trips(const Options& options) {
  Queues queues(1, 16);
  auto histogram = std::make_unique<metrics::LatencyHistogram>();
  std::atomic<bool> done{false};
  std::thread owner([&] {
    Owner& queue = queues.owners.front();
    const auto limit = core::Clock::now() + kLimit;
    const std::uint32_t rounds = 100 * options.rounds;
    for (std::uint32_t i = 0; i < rounds + rounds / 10; ++i) {
      const auto begin = core::Clock::now();
      queue.post_run(1, true);
      auto now = begin;
      while (!queue.poll() && now < limit) now = core::Clock::now();
      if (i >= rounds / 10) histogram->record(core::Clock::now() - begin);
    }
    done.store(true, std::memory_order_release);  // pairs with the load below
  });
  while (!done.load(std::memory_order_acquire)) queues.emulators.engine.progress();
  owner.join();
  return histogram;
}

int run(const Options& options) {
  cli::JsonFile json(options.output);
  const double alone = turns_alone(options, false) / 1e6;
  const double signaled = turns_alone(options, true) / 1e6;
  const double beside = beside_their_owner(options) / 1e6;
  const auto trips = round_trips(options);
  fmt::print(
      "{} queues, runs of {}: {:.1f} M entries/s ({:.1f} M with all signaled), "
      "{:.1f} M beside a thread that posts and polls\n",
      options.queues, options.run, alone, signaled, beside);
  fmt::print("one entry there and back: min {:.2f} us, p50 {:.2f} us, p99 {:.2f} us\n",
             core::to_micros(trips->min()), core::to_micros(trips->percentile(0.5)),
             core::to_micros(trips->percentile(0.99)));
  json.write({{"queues", options.queues},
              {"run", options.run},
              {"entries_m_s", alone},
              {"entries_all_signaled_m_s", signaled},
              {"entries_beside_owner_m_s", beside},
              {"round_trip_min_us", core::to_micros(trips->min())},
              {"round_trip_p50_us", core::to_micros(trips->percentile(0.5))},
              {"round_trip_p99_us", core::to_micros(trips->percentile(0.99))}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  cli::add_integer<std::uint32_t>(line, "--queues", options.queues, 1, 1024, "Queues");
  cli::add_integer<std::uint32_t>(line, "--run", options.run, 1, 1024,
                                  "Post this number of entries with one doorbell, a power of two");
  cli::add_integer<std::uint32_t>(line, "--rounds", options.rounds, 1, 1'000'000,
                                  "Post this number of runs on each queue");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(
      argc, argv, "bench-rdma-emulator",
      "Measures an emulator on a device that carries nothing out: entries a "
      "second, and the time that it adds to a post.",
      declare, run);
}
