/// A sample: the host and a GPU thread exchange counts through two sync events in host memory. A
/// GPU cannot wake a sleeper, so the event that it sets has Publisher::gpu.
#include "apps/samples/sync_event_gpu.hpp"

#include <fmt/core.h>

#include "core/exit_status.hpp"
#include "device/device.hpp"
#include "gpu/cuda_stream.hpp"
#include "tasks/gpu/sync_event.hpp"
#include "tasks/sync/sync_event.hpp"

namespace {

using namespace offload;

constexpr std::uint64_t kRounds = 1000;
constexpr core::Duration kPatience = std::chrono::seconds(2);
constexpr int kNoGpu = 77;

int run() {
  if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
    fmt::print("no GPU: {}\n", gpus.why_none);
    return kNoGpu;
  }
  sync::SyncEvent ping({.name = "ping"});
  sync::SyncEvent pong({.name = "pong", .publisher = sync::Publisher::gpu});
  const gpu::GpuSyncEvent ping_of_gpu(ping);
  const gpu::GpuSyncEvent pong_of_gpu(pong);
  const gpu::CudaStream stream;
  gpu::check_cuda(samples::launch_echo(ping_of_gpu.get(), pong_of_gpu.get(), kRounds, stream.get()),
                  "launch");
  const auto start = core::Clock::now();
  std::uint64_t round = 0;
  for (; round < kRounds; ++round) {
    ping.add(1);
    if (!pong.wait_greater(round, sync::WaitMode::spin, kPatience)) break;
  }
  const auto time = core::Clock::now() - start;
  stream.sync();
  fmt::print("{} round trips, {:.1f} us each\n", pong.get(),
             1e6 * core::to_seconds(time) / static_cast<double>(kRounds));
  return round == kRounds && pong.get() == kRounds ? 0 : 1;
}

}  // namespace

int main() {
  return offload::core::exit_status_of("sample-sync-event-gpu", run);
}
