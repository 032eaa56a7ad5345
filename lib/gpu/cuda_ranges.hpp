#pragma once

#include <cstddef>
#include <string>

#include "memory/range.hpp"
#include "memory/registrar.hpp"

/// Ranges of memory that CUDA makes, and CUDA as a device that memory of the host is registered
/// with. On the CUDA device that is current. Throw Error (driver).
namespace offload::gpu {

/// Zeroed memory of the GPU: Location::device.
memory::Range make_device_range(std::size_t length);

/// Zeroed memory of the host that the GPU reaches at the same address.
memory::Range make_pinned_range(std::size_t length);

/// Makes host memory known to the GPU: a region's peer_pcie. The GPU's address of a range is its
/// Key::handle.
class CudaRegistrar final : public memory::Registrar {
 public:
  [[nodiscard]] std::string name() const override { return "CUDA"; }
  memory::Key register_range(const memory::Range& range, memory::Access access) override;
  void deregister(const memory::Range& range, const memory::Key& key) noexcept override;
};

}  // namespace offload::gpu
