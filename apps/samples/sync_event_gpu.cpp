/// The host and a GPU thread that count to each other through two sync events in host memory. The
/// GPU polls; it can wake nobody, so its event names it as the publisher.
#include "apps/samples/sync_event_gpu.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "device/gpus.hpp"
#include "gpu/memory.hpp"
#include "gpu/stream.hpp"
#include "sync/sync_event.hpp"

namespace {

using namespace offload;

constexpr std::uint64_t kTurns = 1000;
constexpr core::Duration kPatience = std::chrono::seconds(2);
constexpr int kNoGpu = 77;

kernels::SyncEventWords* seen_by_gpu(const gpu::HostRegistration& registration) {
  return static_cast<kernels::SyncEventWords*>(registration.device_address());
}

int run() {
  if (const auto gpus = device::list_gpus(); gpus.devices.empty()) {
    fmt::print("no GPU: {}\n", gpus.why_none);
    return kNoGpu;
  }
  sync::SyncEvent ping({.name = "ping"});
  sync::SyncEvent pong({.name = "pong", .publisher = sync::Publisher::gpu});
  const gpu::HostRegistration ping_registration(ping.memory().data(), ping.memory().size());
  const gpu::HostRegistration pong_registration(pong.memory().data(), pong.memory().size());
  const gpu::Stream stream;
  gpu::check_cuda(samples::launch_echo(seen_by_gpu(ping_registration),
                                       seen_by_gpu(pong_registration), kTurns, stream.get()),
                  "launch");
  const auto start = core::Clock::now();
  std::uint64_t turn = 0;
  for (; turn < kTurns; ++turn) {
    ping.add(1);
    if (!pong.wait_greater(turn, sync::Wait::spin, kPatience)) break;
  }
  const auto time = core::Clock::now() - start;
  stream.sync();
  fmt::print("{} round trips, {:.1f} us each\n", pong.get(),
             1e6 * core::to_seconds(time) / static_cast<double>(kTurns));
  return turn == kTurns && pong.get() == kTurns ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "sample-sync-event-gpu: {}\n", error.what());
    return 1;
  }
}
