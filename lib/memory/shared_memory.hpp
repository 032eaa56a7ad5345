#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>

#include "core/fd.hpp"

namespace offload::memory {

/// The size of this machine's base pages, bytes.
inline std::size_t page_size() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// A sealed memfd and this process's mapping of it: memory shared between processes. Move-only;
/// unmaps on destruction. The descriptor can be passed to another process over a Unix socket.
class SharedMemory {
 public:
  /// Makes `bytes` (rounded up to whole pages) of zeroes, with every page present, on NUMA node
  /// `numa_node` (-1: any). `name` shows in /proc/self/maps. Throws Error.
  static SharedMemory create(const std::string& name, std::size_t bytes, int numa_node);

  /// Maps what another process created. Throws Error (invalid_value) for a file that is shorter
  /// than `bytes`, or not sealed against shrinking: an access beyond its end would raise SIGBUS.
  /// Not `writable`: a write raises SIGSEGV, and the descriptor need not be open for writing.
  static SharedMemory import(core::Fd fd, std::size_t bytes, bool writable = true);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  SharedMemory(core::Fd fd, std::size_t bytes, int protection);

  core::Fd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace offload::memory
