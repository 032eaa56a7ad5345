#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/fd.hpp"

namespace offload::memory {

/// Ranges of one region at most: their descriptors fit one message of a Unix socket (253).
inline constexpr std::size_t kMaxRanges = 64;

/// Where a range's bytes are, which is who can reach them.
enum class Location : std::uint8_t {
  host,    ///< this process alone
  shared,  ///< this process and whoever has the descriptor
  device,  ///< a GPU; this process's CPUs can not
};

/// What a range's descriptor is.
enum class DescriptorKind : std::uint8_t { none, memfd, dma_buf };

/// The file descriptor that another process, or a device driver, reaches a range by.
struct Descriptor {
  DescriptorKind kind = DescriptorKind::none;
  int fd = -1;               ///< kept open by the range's owner
  std::uint64_t offset = 0;  ///< of the range's first byte, bytes
};

/// One contiguous piece of memory, to become part of a region. The functions below make it.
struct Range {
  std::byte* address = nullptr;
  std::size_t length = 0;  ///< bytes
  Location location = Location::host;
  bool writable = true;       ///< by this process
  std::size_t page_size = 0;  ///< of the pages behind it, bytes; 0 where that is not known
  Descriptor descriptor;
  std::shared_ptr<void> owner;  ///< keeps the memory alive; empty for a caller's memory
};

enum class Pages : std::uint8_t { plain, huge };

/// Throws Error (invalid_value) unless the range has bytes, ends within the address space, and has
/// a descriptor that is open, of a whole memfd or of a dma-buf, if it has one.
void check_range(const Range& range);

/// New zeroed memory of `length` bytes, rounded up to whole pages. `numa_node`: where; -1 for
/// anywhere. Huge pages (2 MiB) are asked for, not insisted on: Range::page_size says what came.
/// Throws Error.
Range allocate_range(std::size_t length, int numa_node = -1, Pages pages = Pages::plain);

/// The caller's memory, which must outlive the region.
Range borrow_range(std::span<std::byte> memory);
/// The same, for reading only.
Range borrow_read_only_range(std::span<const std::byte> memory);

/// New zeroed memory that other processes can map (SharedMemory::create). Throws Error.
Range share_range(const std::string& name, std::size_t length, int numa_node = -1);

/// Maps a memfd of another process (SharedMemory::import). Throws Error.
Range import_shared_range(core::Fd fd, std::size_t length, bool writable);

/// Maps `length` bytes of a dma-buf from `offset` on, a multiple of the page size. Throws Error:
/// invalid_value if it is no dma-buf or too short, not_supported if its exporter cannot map it.
Range map_dma_buf_range(core::Fd fd, std::uint64_t offset, std::size_t length, bool writable);

/// Memory that another library made, as CUDA does, and that lives as long as `owner`, with the
/// dma-buf that it can be reached by, if there is one. Throws Error (invalid_value).
Range foreign_range(void* address, std::size_t length, Location location,
                    std::shared_ptr<void> owner, Descriptor descriptor = {});

}  // namespace offload::memory
