#include "memory/region_export.hpp"

#include <fcntl.h>

#include <utility>
#include <variant>

#include "core/error.hpp"
#include "memory/region_blob.hpp"

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

/// A duplicate of a range's descriptor for the importer, read-only unless `writable`. A dma-buf
/// cannot be reopened read-only: there, only the importer's own check keeps it from writing.
core::Fd descriptor_to_pass(const Descriptor& descriptor, bool writable) {
  if (descriptor.kind == DescriptorKind::memfd && !writable) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor.fd);
    return core::Fd(core::check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC),
                                      "cannot open a memfd read-only"));
  }
  return core::Fd(core::check_errno(::fcntl(descriptor.fd, F_DUPFD_CLOEXEC, 0),
                                    "cannot duplicate a descriptor"));
}

Range map_passed(const PassedRange& passed, core::Fd fd, bool writable) {
  if (passed.kind == DescriptorKind::dma_buf) {
    try {
      core::Fd another(core::check_errno(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0),
                                         "cannot duplicate a descriptor"));
      return map_dma_buf_range(std::move(another), passed.offset, passed.length, writable);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
    }
    return reserve_dma_buf_range(std::move(fd), passed.offset, passed.length, writable);
  }
  return import_shared_range(std::move(fd), passed.length, writable);
}

}  // namespace

void require_allowed(const MemoryRegion& region, Access granted) {
  region.require_started("be exported");
  if (includes(region.access(), granted)) return;
  throw Error(ErrorCode::not_permitted, "memory region '" + region.name() + "' allows " +
                                            to_string(region.access()) + ": cannot grant " +
                                            to_string(granted));
}

RegionExport export_region(const MemoryRegion& region, Access granted) {
  check_access(granted);
  require_allowed(region, granted);
  const bool writable = includes(granted, Access::local_write);
  std::vector<PassedRange> passed;
  std::vector<core::Fd> fds;
  for (const Range& range : region.ranges()) {
    if (range.descriptor.kind == DescriptorKind::none) {
      throw Error(ErrorCode::not_supported,
                  "memory region '" + region.name() + "': range " + std::to_string(fds.size()) +
                      " has no descriptor by which another process could map it");
    }
    passed.push_back({range.descriptor.kind, range.descriptor.offset, range.length});
    fds.push_back(descriptor_to_pass(range.descriptor, writable));
  }
  return {RegionBlob{granted, std::move(passed)}.encode(), std::move(fds)};
}

MemoryRegion import_region(std::string name, std::span<const std::byte> blob,
                           std::vector<core::Fd> fds) {
  const RegionBlob described = RegionBlob::decode(blob);
  const auto* passed = std::get_if<std::vector<PassedRange>>(&described.ranges);
  if (passed == nullptr) {
    throw Error(ErrorCode::bad_message, "memory region '" + name + "' was exported for a peer");
  }
  if (passed->size() != fds.size()) {
    throw Error(ErrorCode::bad_message,
                "memory region '" + name + "' has " + std::to_string(passed->size()) +
                    " ranges and came with " + std::to_string(fds.size()) + " descriptors");
  }
  const bool writable = includes(described.access, Access::local_write);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    ranges.push_back(map_passed((*passed)[i], std::move(fds[i]), writable));
  }
  return MemoryRegion({std::move(name), described.access}, ranges);
}

}  // namespace offload::memory
