#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/fd.hpp"
#include "doca/device.hpp"
#include "doca/include/doca_mmap.h"
#include "doca/use.hpp"
#include "memory/process_memory.hpp"
#include "memory/region.hpp"

namespace offload::doca {

/// A use of bytes of an mmap's region that a kernel names by the mmap's key: the mmap cannot be
/// stopped meanwhile. The bytes of an mmap that a peer exported are not there, only their addresses
/// are. Any thread.
class MemoryUse {
 public:
  /// Returns none if no started mmap has that key, or the bytes are not in it.
  static std::optional<MemoryUse> find(std::uint32_t key, std::uint64_t address,
                                       std::uint64_t length) noexcept;
  /// The same for a started mmap that a peer exported for RDMA.
  static std::optional<MemoryUse> find_remote(std::uint32_t key, std::uint64_t address,
                                              std::uint64_t length) noexcept;
  MemoryUse(MemoryUse&& other) noexcept
      : region_(std::exchange(other.region_, nullptr)), bytes_(other.bytes_) {}
  MemoryUse& operator=(MemoryUse other) noexcept {
    std::swap(region_, other.region_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryUse() {
    if (region_ != nullptr) region_->remove_user();
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] memory::Access access() const noexcept { return region_->access(); }
  [[nodiscard]] bool is_writable() const noexcept {
    return memory::includes(access(), memory::Access::local_write);
  }
  /// Returns the key by which a device names the bytes. Throws Error (invalid_value) if the mmap
  /// was not started with it.
  [[nodiscard]] const memory::MemoryKey& key(const memory::Registrar& registrar) const;
  /// Returns the key by which the peer's device names them.
  [[nodiscard]] std::uint32_t key_of_peer() const noexcept { return region_->ranges().front().key; }

 private:
  MemoryUse(memory::MemoryRegion& region, std::span<std::byte> bytes) noexcept
      : region_(&region), bytes_(bytes) {
    region.add_user();
  }

  static std::optional<MemoryUse> find(std::uint32_t key, std::uint64_t address,
                                       std::uint64_t length, bool is_remote) noexcept;

  memory::MemoryRegion* region_;
  std::span<std::byte> bytes_;
};

}  // namespace offload::doca

/// A memory::MemoryRegion, which exists while the mmap is started, and what it is made of.
struct doca_mmap {
  std::optional<offload::memory::MemoryRegion> region;
  std::span<std::byte> memory;
  offload::core::Fd dma_buf;         ///< of the memory; none: it has none
  std::uint64_t dma_buf_offset = 0;  ///< of the memory in it
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
  std::atomic<std::size_t> users{0};  ///< consumers that were created with it
  std::uint32_t key = 0;              ///< for kernels, since the start; 0: none

  /// Ends the start and its exports.
  void end() noexcept;
  [[nodiscard]] std::size_t buffers() const noexcept { return region ? region->users() : 0; }
};

namespace offload::doca {

using MmapUse = Use<doca_mmap>;

/// All flags of doca_access_flag.
inline constexpr std::uint32_t kAllAccessFlags = (DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING << 1) - 1;

/// The rights of a region with flags of doca_access_flag. A right to write of others includes that
/// of the process, as a region that others write must be writable.
memory::Access access_of(std::uint32_t flags) noexcept;

}  // namespace offload::doca
