/// bench-hop-times: the time of each step of a message through a channel to a GPU and back, by the
/// GPU's global timer and the host's clock.

#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/hop_times/timed_hop.hpp"
#include "bench/program.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::vector<std::uint32_t> sizes{64, 256, 372, 373, 4096, 65536};
  std::uint32_t messages = 10'000;
  std::string output;
};

int run(const Options& options) {
  cli::JsonFile json(options.output);
  fmt::print("one message in flight, one block of threads, medians in us\n");
  fmt::print("{:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "bytes", "fill", "to GPU",
             "(look)", "answer", "fence", "to host", "total");
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::uint32_t size : options.sizes) {
    const HopTimes times = measure_hop(size, options.messages);
    const auto micros = [](const metrics::LatencyHistogram& histogram) {
      return core::to_micros(histogram.percentile(0.5));
    };
    fmt::print("{:>8} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f}\n", size,
               micros(times.fill), micros(times.to_gpu), micros(times.look), micros(times.answer),
               micros(times.fence), micros(times.to_host), micros(times.total));
    std::fflush(stdout);
    results.push_back({{"size", size},
                       {"fill_us", micros(times.fill)},
                       {"to_gpu_us", micros(times.to_gpu)},
                       {"look_us", micros(times.look)},
                       {"answer_us", micros(times.answer)},
                       {"fence_us", micros(times.fence)},
                       {"to_host_us", micros(times.to_host)},
                       {"total_us", micros(times.total)}});
  }
  json.write({{"messages", options.messages}, {"results", results}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  add_sizes(line, options.sizes);
  cli::add_integer<std::uint32_t>(line, "--messages", options.messages, 1'000, 10'000'000,
                                  "Send this number of messages of each size");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(argc, argv, "bench-hop-times",
                              "Measures the time of each hop of one message to a GPU and back.",
                              declare, run);
}
