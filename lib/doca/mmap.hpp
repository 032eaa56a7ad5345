#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
  bool is_imported = false;                                  ///< it is started for its life
  std::optional<offload::memory::InPlaceExport> export_pci;  ///< since the start
  doca_data user_data{};

  [[nodiscard]] std::size_t buffers() const noexcept { return region ? region->users() : 0; }
};
