#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/fd.hpp"
#include "memory/shared_memory.hpp"

namespace offload::memory {

/// The most ranges of one region: their descriptors fit in one message of a Unix socket, which
/// takes 253 (SCM_MAX_FD, unix(7)).
inline constexpr std::size_t kMaxRanges = 64;

/// The place of a range's bytes, which decides what can access them.
enum class Location : std::uint8_t {
  host,     ///< accessible to this process alone
  shared,   ///< accessible to every process that has the descriptor
  device,   ///< accessible to a GPU or a card, not to the CPU
  process,  ///< in another process, which system calls access (process_memory.hpp)
  peer,     ///< a peer's, which RDMA operations access by its key
};

/// The kind of a range's descriptor.
enum class DescriptorKind : std::uint8_t { none, memfd, dma_buf };

/// The file descriptor by which another process or a device driver can map a range.
struct Descriptor {
  DescriptorKind kind = DescriptorKind::none;
  int fd = -1;               ///< kept open by Range::owner
  std::uint64_t offset = 0;  ///< of the range's first byte in the file, bytes
};

/// A contiguous piece of memory that can become part of a region. The functions below make it.
struct Range {
  std::byte* address = nullptr;
  std::size_t length = 0;  ///< bytes
  Location location = Location::host;
  bool writable = true;       ///< by this process
  std::size_t page_size = 0;  ///< bytes; 0 if unknown
  Descriptor descriptor;
  std::shared_ptr<void> owner;  ///< keeps the memory alive; null for the caller's own memory
  int process = 0;              ///< the id of that process, whose /proc/ID/mem is descriptor.fd
  std::uint32_t key = 0;        ///< of a peer's memory: its rkey
};

enum class Pages : std::uint8_t { plain, huge };

/// Returns whether this machine's processors cannot reach the memory, and system calls can at most.
constexpr bool is_elsewhere(Location location) noexcept {
  return location == Location::process || location == Location::peer;
}

/// Returns whether this machine's processors reach the memory.
constexpr bool is_in_host(Location location) noexcept {
  return location != Location::device && !is_elsewhere(location);
}

/// Throws Error (invalid_value) unless the range has bytes, ends within the address space, and its
/// descriptor, if it has one, is valid and not of a part of a memfd.
void check_range(const Range& range);

/// New zeroed memory of `length` bytes, rounded up to whole pages, on NUMA node `numa_node` (-1:
/// any). Pages::huge asks for 2 MiB pages and falls back to plain ones; see Range::page_size.
/// Throws Error.
Range allocate_range(std::size_t length, int numa_node = -1, Pages pages = Pages::plain);

/// The caller's memory, which must outlive the region. Throws Error (invalid_value).
Range borrow_range(std::span<std::byte> memory);
/// The same, for reading only.
Range borrow_read_only_range(std::span<const std::byte> memory);

/// New zeroed memory that other processes can map, as SharedMemory::create. Throws Error.
Range share_range(const std::string& name, std::size_t length, int numa_node = -1,
                  Writers writers = Writers::all);

/// Maps a memfd of another process, as SharedMemory::import. Throws Error.
Range import_shared_range(core::Fd fd, std::size_t length, bool writable);

/// Maps `length` bytes of a dma-buf from `offset` on, and what is before them. Throws Error:
/// invalid_value if it is no dma-buf or too short, not_supported if its exporter cannot map it.
Range map_dma_buf_range(core::Fd fd, std::uint64_t offset, std::size_t length, bool writable);

/// Does the same without mapping it, for GPU memory that a card will access: reserves addresses for
/// buffers and keys, without memory behind them (Location::device). Throws Error (invalid_value).
Range reserve_dma_buf_range(core::Fd fd, std::uint64_t offset, std::size_t length, bool writable);

/// Memory that another library allocated, such as CUDA, and that lives as long as `owner`.
/// `descriptor`: its dma-buf, if it has one. Throws Error (invalid_value).
Range foreign_range(void* address, std::size_t length, Location location,
                    std::shared_ptr<void> owner, Descriptor descriptor = {});

}  // namespace offload::memory
