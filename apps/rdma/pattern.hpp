#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "apps/rdma/device/pattern_words.hpp"

namespace offload::rdma_tool {

/// Makes a message of at least one byte, aligned to 8.
void fill(std::span<std::byte> message, const PatternKey& key) noexcept;
/// The first byte that differs from what fill() makes.
std::optional<Mismatch> find_mismatch(std::span<const std::byte> message,
                                      const PatternKey& key) noexcept;

}  // namespace offload::rdma_tool
