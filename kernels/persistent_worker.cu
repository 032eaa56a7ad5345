#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"

namespace offload::kernels {
namespace {

/// Polls of an idle or a busy warp between two heartbeats.
constexpr std::uint32_t kPollsPerHeartbeat = 1024;

/// Not hoisted out of a loop, and not cached in L1.
__device__ std::uint32_t load_word(const std::uint32_t* from) {
  return *static_cast<const volatile std::uint32_t*>(from);
}

/// Each warp of a channel serves every warps_per_channel-th message: consecutive messages are in
/// the hands of different warps, and each warp knows the one slot to look at.
template <class Service>
__global__ void __launch_bounds__(kWarpsPerBlock * 32) persistent_worker(PersistentWorker worker) {
  __shared__ Staging staging[kWarpsPerBlock];
  const std::uint32_t warp_in_block = threadIdx.x / 32;
  const std::uint32_t warp = blockIdx.x * kWarpsPerBlock + warp_in_block;
  const std::uint32_t rank = warp % worker.warps_per_channel;
  const DeviceChannel own = worker.channels[warp / worker.warps_per_channel];
  const Warp group;

  std::uint64_t sequence = own.first_sequence + rank;
  std::uint32_t quiet_polls = 0;
  for (std::uint32_t turn = 0;; ++turn) {
    // Asked for before the poll and looked at after it, so that both are under way together.
    const std::uint32_t stop = load_word(worker.stop);
    const Outcome outcome = serve(group, own.channel, sequence, Service{}, staging[warp_in_block]);
    if (outcome == Outcome::refused && group.lane() == 0) {
      const Vector request = load_vector(own.channel.request(sequence).vectors);
      const std::uint32_t slot = own.channel.layout.slot_of(sequence);
      store_vector(own.fault, {{slot, request.data[0], static_cast<std::uint32_t>(sequence)}, 1});
    }
    if (rank == 0 && turn % kPollsPerHeartbeat == 0 && group.lane() == 0) {
      *static_cast<volatile std::uint64_t*>(own.heartbeat) = turn / kPollsPerHeartbeat + 1ULL;
    }
    if (outcome != Outcome::nothing) {
      sequence += worker.warps_per_channel;
      quiet_polls = 0;
    } else if (quiet_polls < worker.polls_until_idle) {
      ++quiet_polls;
    } else if (worker.idle_sleep_ns != 0) {
      __nanosleep(worker.idle_sleep_ns);
    }
    // One lane's word for all: they leave together.
    if (group.from_first(stop) != 0) return;
  }
}

template <class Service>
cudaError_t launch(const PersistentWorker& worker, cudaStream_t stream) {
  constexpr int kThreads = kWarpsPerBlock * 32;
  const std::uint32_t blocks = worker.channel_count * worker.warps_per_channel / kWarpsPerBlock;
  int device = 0;
  int processors = 0;
  int per_processor = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const auto status =
          cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess) {
    return status;
  }
  if (const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &per_processor, persistent_worker<Service>, kThreads, 0);
      status != cudaSuccess) {
    return status;
  }
  if (blocks > static_cast<std::uint32_t>(processors) * static_cast<std::uint32_t>(per_processor)) {
    return cudaErrorLaunchOutOfResources;
  }
  // Its status is this launch's alone; cudaGetLastError also returns what an earlier call left.
  void* arguments[] = {const_cast<PersistentWorker*>(&worker)};
  return cudaLaunchKernel(persistent_worker<Service>, dim3(blocks), dim3(kThreads), arguments, 0,
                          stream);
}

}  // namespace

cudaError_t launch_persistent_worker(std::string_view service, const PersistentWorker& worker,
                                     cudaStream_t stream) {
  if (worker.channel_count == 0 || worker.warps_per_channel == 0 ||
      worker.warps_per_channel % kWarpsPerBlock != 0) {
    return cudaErrorInvalidValue;
  }
  cudaError_t status = cudaErrorInvalidValue;
  with_service(service, [&](auto chosen) { status = launch<decltype(chosen)>(worker, stream); });
  return status;
}

}  // namespace offload::kernels
