#pragma once

#include <unistd.h>

#include <cstddef>

namespace offload::memory {

/// Of this machine's plain pages, bytes.
inline std::size_t page_size() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace offload::memory
