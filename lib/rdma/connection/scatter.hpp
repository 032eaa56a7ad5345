#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "memory/buffer.hpp"
#include "rdma/verbs/registrar.hpp"

namespace offload::rdma {

/// A message's most bytes, the standard's bound.
inline constexpr std::uint64_t kMostBytes = 1U << 31;

/// Names the tailrooms of a destination in `pieces`, up to `most` bytes; `count`: of the pieces,
/// those used so far, `length`: the bytes that those are. invalid_value for too many pieces or
/// memory that is not registered, not_permitted for memory that may not be written.
inline core::Status scatter(const Registrar& registrar, const memory::Buffer* destination,
                            std::uint64_t most, std::span<ibv_sge> pieces, int& count,
                            std::uint64_t& length) noexcept {
  length = 0;
  for (; destination != nullptr && length != most; destination = destination->next()) {
    const auto room = destination->tailroom();
    if (room.empty()) continue;
    if (static_cast<std::size_t>(count) == pieces.size()) return core::ErrorCode::invalid_value;
    memory::MemoryRegion& region = destination->region();
    const memory::Key* const key = region.key(registrar, destination->range());
    if (key == nullptr) return core::ErrorCode::invalid_value;
    if (!includes(region.access(), memory::Access::local_write)) {
      return core::ErrorCode::not_permitted;
    }
    const std::uint64_t part = std::min<std::uint64_t>(room.size(), most - length);
    pieces[static_cast<std::size_t>(count++)] = {reinterpret_cast<std::uint64_t>(room.data()),
                                                 static_cast<std::uint32_t>(part), key->local};
    length += part;
  }
  return {};
}

}  // namespace offload::rdma
