#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "doca/device.hpp"
#include "doca/include/doca_mmap.h"
#include "memory/process_memory.hpp"
#include "memory/region.hpp"

/// A memory::MemoryRegion, which exists while the mmap is started, and what it is made of.
struct doca_mmap {
  std::optional<offload::memory::MemoryRegion> region;
  std::span<std::byte> memory;
  std::uint32_t access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
  std::vector<offload::doca::DeviceUse> devices;
  doca_mmap_memrange_free_cb_t* free_callback = nullptr;
  void* free_cookie = nullptr;
  bool was_started = false;                                  ///< with this callback
  bool is_imported = false;                                  ///< it cannot be started again
  std::optional<offload::memory::InPlaceExport> export_pci;  ///< since the start
  /// By device; since the start.
  std::vector<std::pair<const doca_dev*, std::vector<std::byte>>> exports_rdma;
  doca_data user_data{};

  /// Ends the start and its exports.
  void end() noexcept;
  [[nodiscard]] std::size_t buffers() const noexcept { return region ? region->users() : 0; }
};

namespace offload::doca {

/// The rights of a region with flags of doca_access_flag. A right to write of others includes that
/// of the process, as a region that others write must be writable.
memory::Access access_of(std::uint32_t flags) noexcept;

}  // namespace offload::doca
