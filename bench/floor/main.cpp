/// bench-floor: the least time that a request to a persistent kernel can take. The CPU writes a
/// 4-byte word into pinned memory, one warp polls it over PCIe and writes it back. A bound of the
/// machine, not of this suite: what gpu_hop measures is compared with it.

#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/floor/word_echo.hpp"
#include "bench/program.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::uint32_t rounds = 200'000;
  std::string output;
};

/// The maximum wait for the GPU's answers.
constexpr core::Duration kLimit = std::chrono::seconds(60);

metrics::LatencyHistogram measure(std::uint32_t rounds) {
  constexpr std::uint32_t kWarmUp = 10'000;
  gpu::CudaStream stream;
  // On different cache lines: the CPU writes one and polls the other.
  gpu::PinnedArray<std::uint32_t> words(256);
  std::uint32_t* const request = words.get();
  const std::uint32_t* const response = words.get() + 128;
  const std::uint32_t last = kWarmUp + rounds;
  gpu::check_cuda(launch_word_echo(request, words.get() + 128, last, stream.get()), "launch");
  metrics::LatencyHistogram histogram;
  const auto deadline = core::Clock::now() + kLimit;
  for (std::uint32_t round = 1; round <= last; ++round) {
    const auto begin = core::Clock::now();
    __atomic_store_n(request, round, __ATOMIC_RELEASE);
    std::uint32_t spins = 0;
    while (__atomic_load_n(response, __ATOMIC_ACQUIRE) != round) {
      if (++spins % 65536 == 0 && core::Clock::now() > deadline) {
        __atomic_store_n(request, last, __ATOMIC_RELEASE);
        throw core::Error(core::ErrorCode::timed_out, "the GPU did not answer in time");
      }
    }
    if (round > kWarmUp) histogram.record(core::Clock::now() - begin);
  }
  stream.sync();
  return histogram;
}

/// The bandwidth of pinned copies over PCIe, in the chosen directions at once: GB/s each way.
double copy_bandwidth(bool to_device, bool to_host) {
  constexpr std::size_t kBytes = 64U << 20;
  constexpr int kCopies = 20;
  struct Way {
    gpu::CudaStream stream;
    gpu::PinnedArray<std::uint8_t> host{kBytes};
    gpu::DeviceArray<std::uint8_t> device{kBytes};
  } there, back;
  const auto copies = [&](int count) {
    for (int i = 0; i < count && to_device; ++i) {
      gpu::check_cuda(cudaMemcpyAsync(there.device.get(), there.host.get(), kBytes,
                                      cudaMemcpyHostToDevice, there.stream.get()),
                      "cudaMemcpyAsync");
    }
    for (int i = 0; i < count && to_host; ++i) {
      gpu::check_cuda(cudaMemcpyAsync(back.host.get(), back.device.get(), kBytes,
                                      cudaMemcpyDeviceToHost, back.stream.get()),
                      "cudaMemcpyAsync");
    }
    for (const auto* way : {&there, &back}) way->stream.sync();
  };
  copies(1);
  const auto begin = core::Clock::now();
  copies(kCopies);
  return static_cast<double>(kBytes) * kCopies / core::to_seconds(core::Clock::now() - begin) / 1e9;
}

int run(const Options& options) {
  cli::JsonFile json(options.output);
  const auto histogram = measure(options.rounds);
  const double to_device = copy_bandwidth(true, false);
  const double to_host = copy_bandwidth(false, true);
  const double both = copy_bandwidth(true, true);
  fmt::print("word echo, one warp: min {:.2f} us, p50 {:.2f} us, p99 {:.2f} us\n",
             core::to_micros(histogram.min()), core::to_micros(histogram.percentile(0.5)),
             core::to_micros(histogram.percentile(0.99)));
  fmt::print("pinned copy: {:.1f} GB/s to the GPU, {:.1f} GB/s back, both at once {:.1f} each\n",
             to_device, to_host, both);
  json.write({{"word_echo_min_us", core::to_micros(histogram.min())},
              {"word_echo_p50_us", core::to_micros(histogram.percentile(0.5))},
              {"word_echo_p99_us", core::to_micros(histogram.percentile(0.99))},
              {"copy_to_gpu_gb_s", to_device},
              {"copy_to_host_gb_s", to_host},
              {"copy_both_gb_s", both}});
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  cli::add_integer<std::uint32_t>(line, "--rounds", options.rounds, 1, 100'000'000,
                                  "Measure this number of round trips");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(
      argc, argv, "bench-floor",
      "Measures the floor: a 4-byte word to a polling GPU warp and back, and pinned copies.",
      declare, run);
}
