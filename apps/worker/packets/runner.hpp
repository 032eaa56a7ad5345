#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "apps/worker/options.hpp"
#include "backend/services.hpp"
#include "kernels/packets/datagram_worker.hpp"
#include "packets/frame_memory.hpp"
#include "packets/port.hpp"

namespace offload::worker {

/// Serves each queue of a port: a thread of the CPU, or a warp of a kernel. One thread.
class DatagramRunner {
 public:
  DatagramRunner& operator=(DatagramRunner&&) = delete;
  /// Stops.
  virtual ~DatagramRunner() = default;

  /// Returns a readable name of the device.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns whether the engine's turns must wake the driver, because a kernel cannot.
  [[nodiscard]] virtual bool needs_waking() const noexcept = 0;
  /// Called once, after the port's start. The arguments outlive the runner. `host`: the host that
  /// answers.
  virtual void start(packets::FrameMemory& memory, packets::Port& port, std::uint32_t mtu,
                     const kernels::packets::HostAddresses& host) = 0;
  /// On return nothing serves any more, which takes milliseconds; false: a kernel does not end.
  virtual bool stop() = 0;
  /// Returns false if a group has exited by itself, because a ring is stuck. Throws Error if a
  /// kernel failed.
  virtual bool is_serving() = 0;
  /// Return the counts of each queue, after the end; before, its words are still written.
  [[nodiscard]] virtual std::span<const kernels::packets::DatagramCounts> counts() const = 0;
};

/// Throws Error: not_found for a service that there is not.
std::unique_ptr<DatagramRunner> make_cpu_datagrams(const Options& options,
                                                   const backend::Services& services);
/// On the calling thread, which makes all calls. Throws Error: not_supported in a build without
/// CUDA, not_found without a GPU.
std::unique_ptr<DatagramRunner> make_cuda_datagrams(const Options& options,
                                                    const backend::Services& services);

}  // namespace offload::worker
