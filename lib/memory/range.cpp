#include "memory/range.hpp"

#include <linux/magic.h>
#include <linux/mman.h>
#include <numa.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "memory/shared_memory.hpp"

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// `value` rounded up to a multiple of `to`; nothing if that overflows.
std::optional<std::size_t> round_up(std::size_t value, std::size_t to) {
  if (value > std::numeric_limits<std::size_t>::max() - (to - 1)) return std::nullopt;
  return (value + to - 1) / to * to;
}

Mapping map_anonymous(std::size_t length, std::size_t page, int flags) {
  const auto bytes = round_up(length, page);
  if (!bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  return map(*bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags);
}

/// `fd`: the descriptor that was mapped, if any, to be kept open.
Range range_of(Mapping mapping, std::size_t page, core::Fd fd = {}) {
  Range range;
  range.address = mapping.get();
  range.length = mapping.get_deleter().length;
  range.page_size = page;
  range.owner = std::make_shared<std::pair<core::Fd, Mapping>>(std::move(fd), std::move(mapping));
  return range;
}

Range range_of(SharedMemory memory, bool writable) {
  auto owner = std::make_shared<SharedMemory>(std::move(memory));
  Range range;
  range.address = owner->data();
  range.length = owner->size();
  range.location = Location::shared;
  range.writable = writable;
  range.page_size = page_size();
  range.descriptor = {DescriptorKind::memfd, owner->fd(), 0};
  range.owner = std::move(owner);
  return range;
}

void check_node(int numa_node) {
  if (numa_node < 0) return;
  if (::numa_available() < 0) {
    throw Error(ErrorCode::not_supported, "this machine has no NUMA nodes to choose from");
  }
  if (numa_node > ::numa_max_node() ||
      ::numa_bitmask_isbitset(::numa_all_nodes_ptr, static_cast<unsigned>(numa_node)) == 0) {
    throw Error(ErrorCode::invalid_value,
                "this process has no memory on NUMA node " + std::to_string(numa_node));
  }
}

/// Throws Error unless `fd` is a dma-buf that has `length` bytes at `offset`. Another kind of file
/// could shrink under its mapping: the next access would raise SIGBUS.
void check_dma_buf(int fd, std::uint64_t offset, std::size_t length) {
  struct statfs status {};
  core::check_errno(::fstatfs(fd, &status), "fstatfs of a dma-buf");
  if (status.f_type != DMA_BUF_MAGIC) {
    throw Error(ErrorCode::invalid_value, "the descriptor is not a dma-buf");
  }
  const auto size = core::check_errno(::lseek(fd, 0, SEEK_END), "lseek of a dma-buf");
  const auto bytes = static_cast<std::uint64_t>(size);
  if (offset > bytes || length > bytes - offset) {
    throw Error(ErrorCode::invalid_value, "a dma-buf of " + std::to_string(bytes) +
                                              " bytes where " + std::to_string(length) + " from " +
                                              std::to_string(offset) + " were announced");
  }
}

}  // namespace

void check_range(const Range& range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.address);
  if (begin == 0 || range.length == 0) {
    throw Error(ErrorCode::invalid_value, "the range of memory is empty");
  }
  if (range.length - 1 > std::numeric_limits<std::uintptr_t>::max() - begin) {
    throw Error(ErrorCode::invalid_value, "the range of memory exceeds the address space");
  }
  const Descriptor& descriptor = range.descriptor;
  if (descriptor.kind != DescriptorKind::none && descriptor.fd < 0) {
    throw Error(ErrorCode::invalid_value, "the range of memory has an invalid descriptor");
  }
  if (descriptor.kind == DescriptorKind::memfd && descriptor.offset != 0) {
    throw Error(ErrorCode::invalid_value, "the range of memory is only a part of its memfd");
  }
}

Range allocate_range(std::size_t length, int numa_node, Pages pages) {
  if (length == 0) throw Error(ErrorCode::invalid_value, "the range of memory is empty");
  check_node(numa_node);
  std::size_t page = kHugePage;
  Mapping mapping;
  if (pages == Pages::huge)
    mapping = map_anonymous(length, page, MAP_HUGETLB | static_cast<int>(MAP_HUGE_2MB));
  if (!mapping) {
    page = page_size();
    mapping = map_anonymous(length, page, 0);
  }
  if (!mapping) core::throw_errno("cannot allocate " + std::to_string(length) + " bytes");
  if (numa_node >= 0) {
    // A node may have none of the machine's huge pages left. With a strict binding the first access
    // would then raise SIGBUS.
    if (page == kHugePage) ::numa_set_bind_policy(0);
    ::numa_tonode_memory(mapping.get(), mapping.get_deleter().length, numa_node);
    ::numa_set_bind_policy(1);  // libnuma's default
  }
  return range_of(std::move(mapping), page);
}

Range borrow_range(std::span<std::byte> memory) {
  Range range;
  range.address = memory.data();
  range.length = memory.size();
  check_range(range);
  return range;
}

Range borrow_read_only_range(std::span<const std::byte> memory) {
  // The const_cast is safe: `writable` keeps the range out of regions that may be written.
  Range range = borrow_range(std::span{const_cast<std::byte*>(memory.data()), memory.size()});
  range.writable = false;
  return range;
}

Range share_range(const std::string& name, std::size_t length, int numa_node, Writers writers) {
  if (length == 0) throw Error(ErrorCode::invalid_value, "the range of memory is empty");
  check_node(numa_node);
  return range_of(SharedMemory::create(name, length, numa_node, writers), true);
}

Range import_shared_range(core::Fd fd, std::size_t length, bool writable) {
  return range_of(SharedMemory::import(std::move(fd), length, writable), writable);
}

namespace {

Range range_of_dma_buf(Mapping mapping, core::Fd fd, Location location, std::uint64_t offset,
                       bool writable) {
  const int descriptor = fd.get();
  Range range = range_of(std::move(mapping), page_size(), std::move(fd));
  range.location = location;
  range.writable = writable;
  range.descriptor = {DescriptorKind::dma_buf, descriptor, offset};
  return range;
}

}  // namespace

Range map_dma_buf_range(core::Fd fd, std::uint64_t offset, std::size_t length, bool writable) {
  check_dma_buf(fd.get(), offset, length);
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  // From its begin on: some of the kernel's exporters (those of its shmem helper) ignore an offset.
  Mapping mapping = map(offset + length, protection, MAP_SHARED, fd.get());
  if (!mapping) {
    const int errnum = errno;
    throw Error(
        ErrorCode::not_supported,
        "the exporter of a dma-buf does not allow mapping it: " + core::describe_errno(errnum),
        {core::Cause::Domain::system, errnum});
  }
  Range range =
      range_of_dma_buf(std::move(mapping), std::move(fd), Location::shared, offset, writable);
  range.address += offset;
  range.length = length;
  return range;
}

Range reserve_dma_buf_range(core::Fd fd, std::uint64_t offset, std::size_t length, bool writable) {
  check_dma_buf(fd.get(), offset, length);
  Mapping mapping = map(length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (!mapping) core::throw_errno("cannot reserve " + std::to_string(length) + " addresses");
  return range_of_dma_buf(std::move(mapping), std::move(fd), Location::device, offset, writable);
}

Range foreign_range(void* address, std::size_t length, Location location,
                    std::shared_ptr<void> owner, Descriptor descriptor) {
  if (descriptor.kind == DescriptorKind::memfd) {
    throw Error(ErrorCode::invalid_value, "a memfd cannot be a foreign range: use share_range");
  }
  Range range;
  range.address = static_cast<std::byte*>(address);
  range.length = length;
  range.location = location;
  range.descriptor = descriptor;
  range.owner = std::move(owner);
  check_range(range);
  return range;
}

}  // namespace offload::memory
