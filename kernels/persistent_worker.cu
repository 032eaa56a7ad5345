#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"

namespace offload::kernels {
namespace {

/// Polls of an idle or a busy group between two heartbeats.
constexpr std::uint32_t kPollsPerHeartbeat = 1024;

/// Not hoisted out of a loop, and not cached in L1.
__device__ std::uint32_t load_word(const std::uint32_t* from) {
  return *static_cast<const volatile std::uint32_t*>(from);
}

/// Threads of a block that works on one message. As measured on an H200: 512 are little quicker
/// with one message under way and, as fewer blocks fit, half as fast with many; 128 take a third
/// longer for 64 KiB. Fewer where a GPU has not room for so many.
constexpr std::uint32_t kMostThreads = 256;
constexpr std::uint32_t kFewestThreads = 64;

template <class Group>
constexpr std::uint32_t kGroupsPerBlock = 1;
template <>
constexpr std::uint32_t kGroupsPerBlock<Warp> = kWarpsPerBlock;

/// Each group of a channel serves every groups_per_channel-th message: consecutive messages are in
/// the hands of different groups, and each knows the one slot to look at.
template <class Group, class Service>
__global__ void __launch_bounds__(kMostThreads) persistent_worker(PersistentWorker worker) {
  constexpr std::uint32_t kGroups = kGroupsPerBlock<Group>;
  __shared__ Staging staging[kGroups];
  const std::uint32_t in_block = kGroups == 1 ? 0 : threadIdx.x / 32;
  const std::uint32_t index = blockIdx.x * kGroups + in_block;
  const std::uint32_t rank = index % worker.groups_per_channel;
  const DeviceChannel own = worker.channels[index / worker.groups_per_channel];
  const Group group;

  std::uint64_t sequence = own.first_sequence + rank;
  std::uint32_t quiet_polls = 0;
  for (std::uint32_t turn = 0;; ++turn) {
    // Asked for before the poll and looked at after it, so that both are under way together.
    const std::uint32_t stop = load_word(worker.stop);
    const Outcome outcome = serve(group, own.channel, sequence, Service{}, staging[in_block]);
    if (outcome == Outcome::refused && group.lane() == 0) {
      const Vector request = load_vector(own.channel.request(sequence).vectors);
      const std::uint32_t slot = own.channel.layout.slot_of(sequence);
      store_vector(own.fault, {{slot, request.data[0], static_cast<std::uint32_t>(sequence)}, 1});
    }
    if (rank == 0 && turn % kPollsPerHeartbeat == 0 && group.lane() == 0) {
      *static_cast<volatile std::uint64_t*>(own.heartbeat) = turn / kPollsPerHeartbeat + 1ULL;
    }
    if (outcome != Outcome::nothing) {
      sequence += worker.groups_per_channel;
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

/// Whether so many blocks of so many threads are on the GPU at once.
template <class Group, class Service>
cudaError_t fits(std::uint32_t blocks, std::uint32_t threads, bool& fit) {
  int device = 0;
  int processors = 0;
  int per_processor = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const auto status =
          cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess) {
    return status;
  }
  const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_processor, persistent_worker<Group, Service>, static_cast<int>(threads), 0);
  fit =
      blocks <= static_cast<std::uint32_t>(processors) * static_cast<std::uint32_t>(per_processor);
  return status;
}

template <class Group, class Service>
cudaError_t launch(const PersistentWorker& worker, std::uint32_t threads, cudaStream_t stream) {
  const std::uint32_t blocks =
      worker.channel_count * worker.groups_per_channel / kGroupsPerBlock<Group>;
  for (bool fit = false;; threads /= 2) {
    if (threads < kFewestThreads) return cudaErrorLaunchOutOfResources;
    const auto status = fits<Group, Service>(blocks, threads, fit);
    if (status != cudaSuccess) return status;
    if (fit) break;
  }
  // Its status is this launch's alone; cudaGetLastError also returns what an earlier call left.
  void* arguments[] = {const_cast<PersistentWorker*>(&worker)};
  return cudaLaunchKernel(persistent_worker<Group, Service>, dim3(blocks), dim3(threads), arguments,
                          0, stream);
}

}  // namespace

cudaError_t launch_persistent_worker(std::string_view service, const PersistentWorker& worker,
                                     cudaStream_t stream) {
  if (worker.channel_count == 0 || worker.groups_per_channel == 0 ||
      worker.groups_per_channel % kWarpsPerBlock != 0) {
    return cudaErrorInvalidValue;
  }
  cudaError_t status = cudaErrorInvalidValue;
  with_service(service, [&](auto chosen) {
    using Service = decltype(chosen);
    status = worker.max_length <= kMaxPacked
                 ? launch<Warp, Service>(worker, kWarpsPerBlock * 32, stream)
                 : launch<ThreadBlock, Service>(worker, kMostThreads, stream);
  });
  return status;
}

}  // namespace offload::kernels
