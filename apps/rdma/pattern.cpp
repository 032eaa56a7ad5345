#include "apps/rdma/pattern.hpp"

#include "kernels/group.hpp"

namespace offload::rdma_tool {

void fill(std::span<std::byte> message, const PatternKey& key) noexcept {
  make_message(kernels::SingleLane{}, message.data(), message.size(), key);
}

std::optional<Mismatch> find_mismatch(std::span<const std::byte> message,
                                      const PatternKey& key) noexcept {
  Mismatch first{};
  if (is_message(kernels::SingleLane{}, message.data(), message.size(), key, first)) {
    return std::nullopt;
  }
  return first;
}

}  // namespace offload::rdma_tool
