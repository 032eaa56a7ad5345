#include "bench/hop_times/timed_worker.hpp"
#include "kernels/launch_kernel.cuh"
#include "kernels/serve.hpp"
#include "kernels/services/reverse.hpp"

namespace offload::bench {
namespace {

using namespace kernels;

/// Threads, as of the persistent kernel's blocks.
constexpr std::uint32_t kThreads = 512;

__device__ std::uint64_t now() {
  std::uint64_t nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
}

/// Polls for message `sequence` until it has come or `deadline` has passed. Called by a warp.
__device__ Received wait(const ChannelView& channel, std::uint64_t sequence, Staging& staging,
                         std::uint64_t deadline, Stamps& stamps) {
  for (;;) {
    stamps.looked = now();
    const Received received = receive(Warp{}, channel, sequence, staging);
    stamps.found = now();
    // Lane 0's clock decides for all lanes: they leave together.
    const bool late = Warp::from_first(stamps.found > deadline) != 0;
    if (received.arrival != Arrival::none || late) return received;
  }
}

__global__ void __launch_bounds__(kThreads)
    timed_worker(const __grid_constant__ ChannelView channel, std::uint32_t messages,
                 Stamps* results, std::uint64_t limit_ns) {
  __shared__ Staging staging;
  __shared__ Received received;
  for (std::uint32_t sequence = 0; sequence < messages; ++sequence) {
    const std::uint64_t deadline = now() + limit_ns;
    Stamps stamps{};
    if (threadIdx.x < 32) {
      const Received found = wait(channel, sequence, staging, deadline, stamps);
      if (threadIdx.x == 0) received = found;
      if (found.arrival == Arrival::packets) {
        respond(Warp{}, channel, sequence, Reverse{}, staging, found);
        stamps.published = now();
      }
    }
    ThreadBlock::sync();
    if (received.arrival == Arrival::none) return;
    if (received.arrival == Arrival::plain) {
      respond(ThreadBlock{}, channel, sequence, Reverse{}, staging, received,
              [&] { stamps.written = now(); });
      stamps.published = now();
    }
    if (threadIdx.x == 0) results[sequence] = stamps;
    ThreadBlock::sync();
  }
}

}  // namespace

cudaError_t launch_timed_worker(const ChannelView& channel, std::uint32_t messages, Stamps* stamps,
                                std::uint64_t limit_ns, cudaStream_t stream) {
  return launch_kernel(timed_worker, 1, kThreads, stream, channel, messages, stamps, limit_ns);
}

}  // namespace offload::bench
