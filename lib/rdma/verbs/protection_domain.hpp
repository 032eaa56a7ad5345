#pragma once

#include <infiniband/verbs.h>

#include "memory/registrar.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// The ibv_access_flags of an Access. Verbs always allow local reads (ibv_reg_mr(3)).
unsigned access_flags(memory::Access access) noexcept;

/// A protection domain (ibv_pd): its queue pairs may use the memory that is registered in it. The
/// device outlives it, and it outlives what is made in it. Move-only.
class ProtectionDomain {
 public:
  /// Throws Error.
  explicit ProtectionDomain(const DeviceContext& device);
  /// Borrows one that another library made and ends. Throws Error (invalid_value) for null.
  static ProtectionDomain import(ibv_pd* native);

  [[nodiscard]] ibv_pd* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::string device_name() const { return native_->context->device->name; }
  /// Returns whether dma-bufs can be registered, such as GPU memory.
  [[nodiscard]] device::Support supports_dma_buf() const;

 private:
  using Native = Handle<ibv_pd, ibv_dealloc_pd>;
  explicit ProtectionDomain(Native native) : native_(std::move(native)) {}

  Native native_;
};

/// Registers memory regions (ibv_mr) in a protection domain. A range with a dma-buf is registered
/// by it where the device can, else by its address; the Error of a failure has the reason of each
/// attempt.
///
/// The domain outlives it. Only the thread that starts and stops a region calls it.
class RdmaRegistrar final : public memory::Registrar {
 public:
  explicit RdmaRegistrar(const ProtectionDomain& domain) noexcept : domain_(domain.get()) {}

  [[nodiscard]] std::string name() const override { return domain_->context->device->name; }
  memory::MemoryKey register_range(const memory::Range& range, memory::Access access) override;
  void deregister(const memory::Range& range, const memory::MemoryKey& key) noexcept override;

 private:
  ibv_pd* domain_;
};

}  // namespace offload::rdma
