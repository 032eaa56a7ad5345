#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>

#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// The free-running clock of an RDMA device, which counts from the device's start
/// (ibv_query_rt_values_ex(3)). The device outlives it. Any thread.
class DeviceClock {
 public:
  /// Throws Error: not_supported for a device without a clock, such as Soft-RoCE.
  explicit DeviceClock(const DeviceContext& device);

  /// Reads the clock. Throws Error.
  [[nodiscard]] std::chrono::nanoseconds now() const;

 private:
  ibv_context* device_;
  std::uint64_t kilohertz_ = 0;
};

}  // namespace offload::rdma
