#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/fd.hpp"

namespace offload::memory {

/// The size of this machine's base pages, bytes.
inline std::size_t page_size() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// The deleter of a mapping of `length` bytes.
struct Unmap {
  std::size_t length = 0;
  void operator()(std::byte* address) const noexcept;
};
/// Memory from mmap(2), which it unmaps; null, with errno set, if that failed.
using Mapping = std::unique_ptr<std::byte, Unmap>;

/// mmap(2) of `length` bytes, wherever the kernel has room.
Mapping map(std::size_t length, int protection, int flags, int fd = -1);

/// The processes that may write to shared memory: with `maker`, another process with the descriptor
/// can only map it read-only, however it opens it (F_SEAL_FUTURE_WRITE, fcntl(2)).
enum class Writers : std::uint8_t { all, maker };

/// A sealed memfd and this process's mapping of it: memory shared between processes. Move-only;
/// unmaps on destruction. The descriptor can be passed to another process over a Unix socket.
class SharedMemory {
 public:
  /// Makes `bytes` (rounded up to whole pages) of zeroes, with every page present, on NUMA node
  /// `numa_node` (-1: any). `name` shows in /proc/self/maps. Throws Error.
  static SharedMemory create(const std::string& name, std::size_t bytes, int numa_node,
                             Writers writers = Writers::all);
  /// The same without a page: each comes with its first access, on any node.
  static SharedMemory reserve(const std::string& name, std::size_t bytes,
                              Writers writers = Writers::all);

  /// Maps what another process created. Throws Error (invalid_value) for a file that is shorter
  /// than `bytes`, or not sealed against shrinking: an access beyond its end would raise SIGBUS.
  /// Not `writable`: a write raises SIGSEGV, and the descriptor need not be open for writing.
  static SharedMemory import(core::Fd fd, std::size_t bytes, bool writable = true);

  [[nodiscard]] std::byte* data() const noexcept { return mapping_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return mapping_.get_deleter().length; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  SharedMemory(core::Fd fd, std::size_t bytes, int protection);

  core::Fd fd_;
  Mapping mapping_;
};

}  // namespace offload::memory
