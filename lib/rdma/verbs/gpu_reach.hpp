#pragma once

#include <functional>
#include <string>

#include "memory/range.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// The way in which a card reaches memory of a GPU.
enum class Reach : std::uint8_t {
  dma_buf,
  address,  ///< by the GPU's driver for peer memory
  none,
};

/// The way to access memory of a GPU, and why there is no better one.
struct GpuReach {
  Reach way = Reach::none;
  std::string why;  ///< empty for dma_buf

  /// "by its dma-buf", "by its address, as it has no dma-buf", ...
  [[nodiscard]] std::string describe() const;
};

/// Tests it: registers `range`, memory of a GPU, with the access that messages need, and
/// deregisters it.
GpuReach reach_of(const ProtectionDomain& domain, const memory::Range& range);

/// The range for messages between a card and a GPU: what `of_gpu` makes if the card reaches that,
/// such as by gpu::make_exported_range(), else what `of_host` makes, pinned memory that both reach.
/// An RdmaRegistrar registers it in the way that was found. Logs which it is. Throws Error: what
/// `of_host` throws.
memory::Range choose_range(const ProtectionDomain& domain,
                           const std::function<memory::Range()>& of_gpu,
                           const std::function<memory::Range()>& of_host);

}  // namespace offload::rdma
