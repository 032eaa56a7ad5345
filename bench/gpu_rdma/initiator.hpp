#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bench/gpu_rdma/load.hpp"

namespace offload::bench {

/// Posts operations: from warps of a GPU, or from threads of the CPU instead.
class Initiator {
 public:
  Initiator() = default;
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;
  virtual ~Initiator() = default;

  /// Zeroed memory that initiator and CPU reach at one address, aligned to 64 bytes. It lives as
  /// long as the initiator, or until clear().
  virtual void* allocate(std::size_t bytes) = 0;
  /// The same for the initiator's threads alone.
  virtual void* allocate_own(std::size_t bytes) = 0;
  virtual void clear() = 0;
  /// Starts `groups` groups on the load; they end by its limit.
  virtual void start(const Load& load, std::uint32_t groups) = 0;
  /// Waits for them.
  virtual void join() = 0;
};

std::unique_ptr<Initiator> make_cpu_initiator();
/// Returns null if this build has no CUDA. Throws Error if there is no GPU.
std::unique_ptr<Initiator> make_gpu_initiator();

}  // namespace offload::bench
