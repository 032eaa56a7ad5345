#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "core/fd.hpp"

namespace offload::support {

/// Returns whether memory of a process is accessible by its file of /proc here, as of others by
/// ptrace(2): containers may deny it, and emulators lack it.
inline bool has_process_memory() {
  const char from = 1;
  char to = 0;
  const core::Fd memory(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(&from));
  return memory.valid() && ::pread(memory.get(), &to, 1, at) == 1 && to == 1;
}

}  // namespace offload::support
