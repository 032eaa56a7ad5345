#pragma once

#include <cuda_runtime.h>

#include "kernels/gate.cuh"
#include "kernels/launch_kernel.cuh"
#include "kernels/persistent_worker.hpp"
#include "kernels/resident_blocks.cuh"
#include "kernels/serve.hpp"
#include "kernels/warp_poller.cuh"

/// The persistent kernel, instantiated for each service where that is compiled: with the suite
/// (module/built_in.cu) or in a module. So it calls its service directly.
namespace offload::kernels {

/// The threads of a block that processes one message: with 512, FlatResponse has 64 KiB in flight.
/// Fewer if a GPU has no room for them.
inline constexpr std::uint32_t kMostThreads = 512;
inline constexpr std::uint32_t kFewestThreads = 64;

/// The kernel for channels whose messages all fit in packets: each warp polls and answers alone,
/// batches too.
template <class Service, bool kPosts>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    serve_by_warps(const __grid_constant__ PersistentWorker worker,
                   const __grid_constant__ Service service) {
  __shared__ Staging staging_of[kWarpsPerBlock];
  const std::uint32_t in_block = threadIdx.x / 32;
  Staging& staging = staging_of[in_block];
  WarpPoller<kPosts> poller(worker, blockIdx.x * kWarpsPerBlock + in_block);
  const auto always = [] { return true; };
  for (Received received{}; poller.wait(staging, received, always);) {
    poller.answer(service, staging, received);
  }
}

/// A plain content that the first warp of a block received and the whole block answers.
struct Job {
  bool end;         ///< no message: the worker must end
  bool opens_gate;  ///< the gate opens for the next message only when this one is written
  std::uint64_t sequence;
  Received received;
};

/// Answers contents in packets with one warp until a plain one arrives or the worker must end.
template <class Poller, class Service>
__device__ Job next_job(Poller& poller, Gate& gate, const Service& service, Staging& staging) {
  const auto may_look = [&] { return gate.is_open(poller.sequence()); };
  for (Received received{}; poller.wait(staging, received, may_look);) {
    const bool opened = gate.found(poller.sequence(), received);
    if (received.arrival == Arrival::plain) return {false, !opened, poller.sequence(), received};
    poller.answer(service, staging, received);
  }
  return {true, false, 0, {}};
}

/// The kernel for channels whose messages may be longer: a block's first warp receives all contents
/// and answers those in packets; the whole block answers a plain one, long message or batch.
template <class Service, bool kPosts>
__global__ void __launch_bounds__(kMostThreads)
    serve_by_blocks(const __grid_constant__ PersistentWorker worker,
                    const __grid_constant__ Service service) {
  __shared__ Staging staging;
  __shared__ Job job;
  WarpPoller<kPosts> poller(worker, blockIdx.x);
  Gate gate(worker, blockIdx.x);
  for (;;) {
    if (threadIdx.x < 32) {
      const Job next = next_job(poller, gate, service, staging);
      if (threadIdx.x == 0) job = next;
      poller.next();
    }
    ThreadBlock::sync();
    if (job.end) return;
    // By another warp than the one that fences: the fence would wait for this write.
    const auto open_gate = [&] {
      if (job.opens_gate && threadIdx.x == 32) gate.open_next(job.sequence);
    };
    poller.begin_busy();
    const Response response = respond(ThreadBlock{}, poller.channel(), job.sequence, service,
                                      staging, job.received, open_gate);
    if (threadIdx.x < 32) poller.finish(job.sequence, job.received, response);
    poller.end_busy();
  }
}

/// Returns the share of the current GPU that `blocks` blocks of `threads` threads take; above 1,
/// the blocks cannot all be resident at once.
template <class Service>
cudaError_t share_of(void (*kernel)(PersistentWorker, Service), std::uint32_t blocks,
                     std::uint32_t threads, double& share) {
  std::uint32_t room = 0;
  const auto status = count_resident_blocks(kernel, threads, room);
  share = room > 0 ? static_cast<double>(blocks) / room : 2;
  return status;
}

/// Launches `kernel` with the largest number of threads in a block that fits, from `most` down to
/// `fewest`, beside the share `taken`, to which it adds its own.
template <class Service>
cudaError_t launch(void (*kernel)(PersistentWorker, Service), const Service& service,
                   const PersistentWorker& worker, std::uint32_t blocks, std::uint32_t most,
                   std::uint32_t fewest, double& taken, cudaStream_t stream) {
  std::uint32_t threads = most;
  for (double share = 0;; threads /= 2) {
    if (threads < fewest) return cudaErrorLaunchOutOfResources;
    const auto status = share_of(kernel, blocks, threads, share);
    if (status != cudaSuccess) return status;
    if (taken + share > 1) continue;
    taken += share;
    break;
  }
  return launch_kernel(kernel, blocks, threads, stream, worker, service);
}

/// Launches the kernel with `service` on `stream`. `taken`: the share of the GPU that persistent
/// kernels have, with this one's afterwards. cudaErrorLaunchOutOfResources if not all blocks fit on
/// the GPU beside the others': a block that is not resident would wait forever for one that does
/// not end.
template <class Service>
cudaError_t launch_persistent_worker(const Service& service, const PersistentWorker& worker,
                                     double& taken, cudaStream_t stream) {
  if (worker.channel_count == 0 || worker.groups_per_channel == 0 ||
      worker.groups_per_channel % kWarpsPerBlock != 0) {
    return cudaErrorInvalidValue;
  }
  const std::uint32_t groups = worker.channel_count * worker.groups_per_channel;
  if (worker.max_length <= kMaxPacketPayload) {
    constexpr std::uint32_t kThreads = kWarpsPerBlock * 32;  // each of the warps has its poller
    return launch(worker.posts ? serve_by_warps<Service, true> : serve_by_warps<Service, false>,
                  service, worker, groups / kWarpsPerBlock, kThreads, kThreads, taken, stream);
  }
  return launch(worker.posts ? serve_by_blocks<Service, true> : serve_by_blocks<Service, false>,
                service, worker, groups, kMostThreads, kFewestThreads, taken, stream);
}

/// Loads the kernels for the current GPU. Returns cudaErrorNoKernelImageForDevice if they were
/// compiled for others. Must be called before any persistent kernel runs: CUDA may wait for all
/// running kernels when it loads code.
template <class Service>
cudaError_t load_persistent_worker() {
  for (const auto kernel : {serve_by_warps<Service, true>, serve_by_warps<Service, false>,
                            serve_by_blocks<Service, true>, serve_by_blocks<Service, false>}) {
    cudaFuncAttributes attributes{};
    const auto status = cudaFuncGetAttributes(&attributes, kernel);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace offload::kernels
