#pragma once

#include <infiniband/verbs.h>

#include "device/device.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/handle.hpp"

namespace offload::rdma {

/// Which queue pairs may use which registered memory: those of the same domain. The device outlives
/// it, and it outlives what is made in it. Move-only.
class ProtectionDomain {
 public:
  /// Throws Error.
  explicit ProtectionDomain(const DeviceContext& device)
      : native_(check_pointer(ibv_alloc_pd(device.get()),
                              "make a protection domain on " + device.name()),
                "a protection domain") {}
  /// One that another library made, and ends. Throws Error (invalid_value) for null.
  static ProtectionDomain import(ibv_pd* native);

  [[nodiscard]] ibv_pd* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::string device_name() const { return native_->context->device->name; }

  /// Whether dma-bufs can be registered: the memory of GPUs, without a copy through the host's.
  [[nodiscard]] device::Support supports_dma_buf() const;

 private:
  using Native = Handle<ibv_pd, ibv_dealloc_pd>;
  explicit ProtectionDomain(Native native) : native_(std::move(native)) {}

  Native native_;
};

}  // namespace offload::rdma
