#pragma once

#include "doca/include/doca_buf.h"
#include "tasks/memory/buffer.hpp"

namespace offload::doca {

// A doca_buf is a memory::Buffer; programs hold references to it that no BufferRef holds.

inline doca_buf* handle_of(memory::Buffer* buffer) noexcept {
  return reinterpret_cast<doca_buf*>(buffer);
}

/// The buffer of a handle; null for null, and for a buffer to which the program has no reference:
/// it was returned to its inventory, or only a task holds it.
inline memory::Buffer* buffer_of(doca_buf* buf) noexcept {
  auto* const buffer = reinterpret_cast<memory::Buffer*>(buf);
  return buffer != nullptr && buffer->own_references() != 0 ? buffer : nullptr;
}
inline const memory::Buffer* buffer_of(const doca_buf* buf) noexcept {
  return buffer_of(const_cast<doca_buf*>(buf));
}

}  // namespace offload::doca
