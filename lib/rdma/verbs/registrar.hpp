#pragma once

#include "memory/registrar.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// Registers memory regions in a protection domain. A range that has a dma-buf is registered by it
/// if the device can; else, and host memory at once, by its address. Where neither works, the Error
/// says why for each.
///
/// The domain outlives it. As a region uses it: the thread that starts and stops the region.
class Registrar final : public memory::Registrar {
 public:
  explicit Registrar(const ProtectionDomain& domain) noexcept : domain_(domain.get()) {}

  [[nodiscard]] std::string name() const override { return domain_->context->device->name; }
  memory::Key register_range(const memory::Range& range, memory::Access access) override;
  void deregister(const memory::Range& range, const memory::Key& key) noexcept override;

  [[nodiscard]] ibv_pd* domain() const noexcept { return domain_; }

 private:
  ibv_pd* domain_;
};

}  // namespace offload::rdma
