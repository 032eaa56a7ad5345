/// One hop through a channel without TCP: from "slot posted" to "response seen", as an I/O thread
/// of the server does it, one thread a channel, every response checked.

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <future>
#include <latch>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "bench/gpu_hop/hop.hpp"
#include "bench/program.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"

namespace offload::bench {
namespace {

constexpr std::uint32_t kMostInFlight = 1U << 20;

struct Options {
  std::string backend = "cuda";
  std::string service = "reverse";
  std::vector<std::string> modules;
  backend::ServiceOptions service_options;
  std::optional<Answers> answers;
  std::vector<std::uint32_t> sizes{8, 64, 256, 372, 4096, 65536};
  std::uint32_t large = 0;
  std::uint32_t max_length = 0;
  std::uint32_t in_flight = 1;
  bool together = false;
  std::uint32_t channels = 1;
  std::uint32_t gpus = 1;
  std::uint32_t depth = 128;
  std::uint32_t warps = 0;  ///< 0: the back end's choice
  std::uint32_t batches = backend::GraphOptions{}.batches;
  std::uint64_t messages = 200'000;
  core::Duration idle_sleep = std::chrono::microseconds(20);
  core::Duration gap{};
  std::string output;
};

/// `gpu`: its number, as CUDA counts.
std::unique_ptr<backend::Backend> open_backend(const Options& options, std::uint32_t gpu) {
  constexpr core::Duration kSpin = std::chrono::milliseconds(1);  // no thread sleeps meanwhile
  const std::string name = "gpu:" + std::to_string(gpu);
  const backend::Services services(options.modules, options.service_options);
  if (options.backend == "cpu") return backend::make_cpu_backend(kSpin, services);
  if (options.backend == "graph") {
    return backend::make_graph_backend({name, kSpin, options.batches}, services);
  }
  const auto warps = options.warps == 0 ? std::nullopt : std::optional(options.warps);
  return backend::make_cuda_backend({name, warps, options.idle_sleep}, services);
}

/// All the channels, dealt among the GPUs.
using Hops = std::vector<std::unique_ptr<Hop>>;

/// One GPU's share of the channels, from the back end's start to its stop. On a separate thread,
/// as CUDA's current device is the thread's. Counts `not_started` down once, and begins when all
/// have.
void run_share(const Options& options, const Load& load, std::uint32_t gpu, Hops& hops,
               std::latch& not_started) {
  std::unique_ptr<backend::Backend> backend;
  std::vector<Hop*> own;
  try {
    backend = open_backend(options, gpu);
    std::vector<channel::SharedChannel> served;
    for (std::uint32_t i = gpu; i < hops.size(); i += options.gpus) {
      hops[i] = std::make_unique<Hop>(i, options.depth, load, backend->wakeup(),
                                      options.answers ? &*options.answers : nullptr);
      served.push_back(hops[i]->worker_end());
      own.push_back(hops[i].get());
    }
    backend->start(std::move(served), options.service);
  } catch (...) {
    not_started.count_down();
    throw;
  }
  not_started.arrive_and_wait();
  std::vector<std::thread> threads;
  for (Hop* const hop : own) {
    threads.emplace_back([&, hop] {
      hop->run(options.messages, {options.in_flight, options.together, options.gap});
    });
  }
  for (auto& thread : threads) thread.join();
  backend->check();  // throws the reason, if it has ended by itself
  if (!backend->stop(std::chrono::seconds(5))) {
    throw core::Error(core::ErrorCode::timed_out, "the back end did not stop in time");
  }
}

double mean_size(const Load& load) {
  if (load.large == 0) return load.size;
  return (static_cast<double>(load.size) * (kLargeEvery - 1) + load.large) / kLargeEvery;
}

nlohmann::ordered_json measure(const Options& options, std::uint32_t size) {
  const Load load{size, options.large, std::max({size, options.large, options.max_length})};
  Hops hops(options.channels);
  std::latch not_started(options.gpus);
  std::vector<std::future<void>> shares;
  for (std::uint32_t gpu = 0; gpu < options.gpus; ++gpu) {
    shares.push_back(std::async(std::launch::async,
                                [&, gpu] { run_share(options, load, gpu, hops, not_started); }));
  }
  for (auto& share : shares) share.wait();
  for (auto& share : shares) share.get();

  metrics::LatencyHistogram latency;
  metrics::LatencyHistogram fill;
  core::Duration longest{};
  for (const auto& hop : hops) {
    if (!hop->fault().empty()) throw core::Error(core::ErrorCode::unexpected, hop->fault());
    latency.merge(hop->latency());
    fill.merge(hop->fill());
    longest = std::max(longest, hop->duration());
  }
  const double fill_us = core::to_micros(fill.percentile(0.5));
  const double min_us = core::to_micros(latency.min());
  const double p50_us = core::to_micros(latency.percentile(0.5));
  const double p99_us = core::to_micros(latency.percentile(0.99));
  const double p999_us = core::to_micros(latency.percentile(0.999));
  const double rate =
      static_cast<double>(options.messages * options.channels) / core::to_seconds(longest);
  fmt::print("{:>8} {:>10.3f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", size,
             rate / 1e6, rate * mean_size(load) / 1e9, fill_us, min_us, p50_us, p99_us, p999_us);
  std::fflush(stdout);
  return {{"size", size},     {"rate_per_s", rate}, {"fill_us", fill_us}, {"min_us", min_us},
          {"p50_us", p50_us}, {"p99_us", p99_us},   {"p999_us", p999_us}};
}

int run(const Options& options) {
  cli::JsonFile json(options.output);
  if (options.gpus > options.channels) {
    throw core::Error(core::ErrorCode::invalid_value, "there are more GPUs than channels");
  }
  fmt::print("{} back end, {} channels of depth {}, {} in flight on each", options.backend,
             options.channels, options.depth, options.in_flight);
  if (options.together) fmt::print(", posted together");
  if (options.gpus > 1) fmt::print(", over {} GPUs", options.gpus);
  if (options.warps != 0) fmt::print(", {} warps a channel", options.warps);
  if (options.backend == "graph") fmt::print(", {} batches in flight on each", options.batches);
  if (options.large != 0) fmt::print(", every 11th message of {} bytes", options.large);
  fmt::print("\n");
  fmt::print("{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "bytes", "M msg/s", "GB/s",
             "fill us", "min us", "p50 us", "p99 us", "p99.9 us");
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::uint32_t size : options.sizes) results.push_back(measure(options, size));
  json.write({{"backend", options.backend},
              {"channels", options.channels},
              {"gpus", options.gpus},
              {"depth", options.depth},
              {"in_flight", options.in_flight},
              {"together", options.together},
              {"large", options.large},
              {"warps", options.warps},
              {"batches", options.batches},
              {"results", results}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  cli::add_choice(line, "--backend", options.backend, {"cuda", "graph", "cpu"},
                  "Answer with this back end");
  cli::add_text(
      line, "--service", options.service,
      "Process messages with this service: reverse, or a service of a module that does the same");
  const auto take_module = [&options](const std::string& text) {
    options.modules.push_back(text);
    return !text.empty();
  };
  cli::add_values(line, "--service-module FILE", take_module, "a shared library with a service",
                  "Load this module, as offload-worker does; to compare a service of a module with "
                  "a built-in one");
  const auto take_option = [&options](const std::string& text) {
    return backend::add_service_option(options.service_options, text);
  };
  cli::add_values(line, "--service-option KEY=VALUE", take_option, "KEY=VALUE",
                  "Pass this option to the service, as offload-worker does");
  const auto take_answers = [&options](const std::string& path) {
    options.answers = Answers::read(path);
    options.sizes = {options.answers->request_bytes};
    return true;
  };
  cli::add_values(line, "--answers FILE", take_answers, "a file of bench/services.py",
                  "Read requests and expected responses from this file, for a service that does "
                  "not reverse; instead of --sizes");
  add_sizes(line, options.sizes);
  cli::add_integer<std::uint32_t>(
      line, "--large", options.large, 0, kernels::kMaxMessageLength,
      "Give every 11th message this size in bytes; latencies are of the other messages");
  cli::add_integer<std::uint32_t>(
      line, "--max-length", options.max_length, 0, kernels::kMaxMessageLength,
      "Give channels a maximum message length of at least this number of bytes");
  cli::add_integer<std::uint32_t>(line, "--in-flight", options.in_flight, 1, kMostInFlight,
                                  "Keep this number of messages in flight on a channel");
  cli::add_flag(line, "--together", options.together,
                "Post all messages in flight together, and again when all are answered; latencies "
                "are from before the first write to the last response");
  cli::add_integer<std::uint32_t>(line, "--channels", options.channels, 1, 256,
                                  "Use this number of channels, each driven by a thread");
  cli::add_integer<std::uint32_t>(
      line, "--gpus", options.gpus, 1, 16,
      "Distribute the channels over this number of GPUs, with a back end on each");
  cli::add_integer<std::uint32_t>(line, "--depth", options.depth, 1, kernels::kMaxDepth,
                                  "Give each channel this number of slots, a power of two");
  cli::add_integer<std::uint32_t>(line, "--warps", options.warps, 0, 64,
                                  "cuda: use this number of warps for a channel, a multiple of 4; "
                                  "0: as many as offload-worker uses for such messages");
  cli::add_integer<std::uint32_t>(line, "--batches", options.batches, 1, 16,
                                  "graph: keep this number of batches of a channel in flight");
  cli::add_integer<std::uint64_t>(line, "--messages", options.messages, 1, 1'000'000'000,
                                  "Send this number of messages on each channel");
  cli::add_time(line, "--idle-sleep", options.idle_sleep, core::Duration{},
                "cuda: as the option of offload-worker");
  cli::add_time(line, "--gap", options.gap, core::Duration{},
                "Pause for this time before each message, so that the worker is idle");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(
      argc, argv, "bench-gpu-hop",
      "Measures round trips through channels to the worker's back end, without TCP.", declare, run);
}
