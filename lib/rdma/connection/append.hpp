#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/buffer.hpp"

namespace offload::rdma {

/// What a device put into a destination's tailrooms becomes data.
inline void append(memory::Buffer* buffer, std::uint64_t length) noexcept {
  for (; buffer != nullptr && length != 0; buffer = buffer->next()) {
    const std::uint64_t part = std::min<std::uint64_t>(length, buffer->tailroom().size());
    static_cast<void>(buffer->append(part));
    length -= part;
  }
}

}  // namespace offload::rdma
