#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "apps/packets/lane.hpp"
#include "packets/frame_memory.hpp"
#include "packets/port.hpp"

namespace offload::packets {

/// The work that is the same for all queues: LaneWork without the fields of each queue.
struct Plan {
  Command command = Command::count;
  std::span<const std::uint8_t> frames;  ///< Templates
  std::span<const std::uint32_t> lengths;
  std::uint64_t statistics_every = 1000;
  std::uint64_t interval_ns = 0;
  std::uint64_t most_packets = 0;
  std::uint32_t port = 0;
  std::uint32_t batch = 32;
  kernels::packets::HostAddresses host{};  ///< who answers
};

inline constexpr std::uint32_t kItemsLog2 = 8;  ///< items of a queue's semaphore: 256, 0.5 MiB

/// Runs a lane for each queue of a port: threads of the CPU, or warps of a kernel. One thread.
class Runner {
 public:
  Runner& operator=(Runner&&) = delete;
  /// Stops.
  virtual ~Runner() = default;

  /// Called once, after the port's start.
  virtual void start() = 0;
  /// Stops the lanes, which takes milliseconds; on return they have exited.
  virtual void stop() = 0;
  /// Returns whether all lanes have exited by themselves. Throws Error if a kernel failed.
  virtual bool is_done() = 0;
  /// The sum of all lanes'. Any time.
  [[nodiscard]] virtual LaneCounts counts() const = 0;
  /// Items of each queue.
  [[nodiscard]] virtual std::span<const kernels::packets::Semaphore> items() const = 0;
};

std::unique_ptr<Runner> make_cpu_runner(packets::FrameMemory& memory, packets::Port& port,
                                        const Plan& plan);
/// Throws Error: not_supported in a build without CUDA, driver.
std::unique_ptr<Runner> make_cuda_runner(packets::FrameMemory& memory, packets::Port& port,
                                         const Plan& plan);

/// The data of each queue beside its lanes' counts, in memory that lanes and the CPU see.
struct QueueItems {
  kernels::packets::Semaphore::Status statuses[1U << kItemsLog2];
  PacketItem items[1U << kItemsLog2];

  [[nodiscard]] kernels::packets::Semaphore view() noexcept {
    return {statuses, reinterpret_cast<std::uint8_t*>(items), sizeof(PacketItem), kItemsLog2};
  }
};

LaneWork make_work(const Plan& plan, const kernels::packets::Queue* queue,
                   const std::uint32_t* stop, LaneCounts* counts, QueueItems& items);
LaneCounts sum_of(std::span<const LaneCounts> counts) noexcept;

}  // namespace offload::packets
