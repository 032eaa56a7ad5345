#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "apps/rdma_tasks/device/pattern_words.hpp"
#include "kernels/group.hpp"

namespace offload::rdma_tool {

/// Makes a message of at least one byte, aligned to 8.
inline void fill(std::span<std::byte> message, const PatternKey& key) noexcept {
  make_message(kernels::SingleLane{}, message.data(), message.size(), key);
}
/// The first byte that differs from what fill() makes.
inline std::optional<Mismatch> find_mismatch(std::span<const std::byte> message,
                                             const PatternKey& key) noexcept {
  Mismatch first{};
  if (is_message(kernels::SingleLane{}, message.data(), message.size(), key, first)) {
    return std::nullopt;
  }
  return first;
}

}  // namespace offload::rdma_tool
