#pragma once

#include <cstddef>
#include <string>

#include "core/fd.hpp"
#include "memory/range.hpp"
#include "memory/registrar.hpp"

/// Memory ranges made by CUDA, and the registrar that makes host memory known to CUDA. All work on
/// the current CUDA device and throw Error (driver).
namespace offload::gpu {

/// Zeroed memory of the GPU: Location::device.
memory::Range make_device_range(std::size_t length);

/// The same, alone in its pages and with its dma-buf, by which network cards reach it. Where the
/// driver exports none, the range has none, and the log says why at level debug.
memory::Range make_exported_range(std::size_t length);

/// Exports memory of the GPU, whole pages of the host, as a dma-buf. Returns an invalid descriptor,
/// with a line in the log at level debug, where the driver exports none.
core::Fd export_dma_buf(void* address, std::size_t bytes);

/// Zeroed pinned memory of the host, which the GPU reaches at the same address: Location::host.
memory::Range make_pinned_range(std::size_t length);

/// Registers host memory with the GPU, for regions that allow peer_pcie. MemoryKey::handle is the
/// GPU's address of a range.
class CudaRegistrar final : public memory::Registrar {
 public:
  [[nodiscard]] std::string name() const override { return "CUDA"; }
  memory::MemoryKey register_range(const memory::Range& range, memory::Access access) override;
  void deregister(const memory::Range& range, const memory::MemoryKey& key) noexcept override;
};

}  // namespace offload::gpu
