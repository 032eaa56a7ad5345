#include "doca/mmap.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "doca/gpu/gpu.hpp"
#include "doca/guard.hpp"
#include "doca/rdma/rdma_device.hpp"
#include "memory/process_memory.hpp"
#include "memory/range.hpp"
#include "memory/region_blob.hpp"
#include "protocol/bytes.hpp"
#include "tasks/memory/remote_region.hpp"

namespace offload::doca {
namespace {

using memory::Access;

auto find_device(doca_mmap& mmap, const doca_dev* dev) noexcept {
  return std::find_if(mmap.devices.begin(), mmap.devices.end(),
                      [&](const DeviceUse& use) { return use.get() == dev; });
}

/// Returns whether bytes look like an export for RDMA, whose first number says so.
bool is_for_rdma(std::span<const std::byte> blob) {
  return protocol::Reader(blob).integer<std::uint32_t>() == memory::kRegionEnvelope.magic;
}

/// Makes what another process exported the memory of `mmap`, which is one range. Throws Error.
void take_memory(doca_mmap& mmap, std::span<const memory::Range> exported) {
  if (exported.size() != 1) {
    throw core::Error(core::ErrorCode::not_supported, "an export of several ranges of memory");
  }
  mmap.memory = {exported.front().address, exported.front().length};
}

/// Makes what another process exported, for its PCI side or for RDMA, the region of `mmap`. Throws
/// Error.
void import(doca_mmap& mmap, std::span<const std::byte> blob) {
  if (is_for_rdma(blob)) {
    const memory::RemoteRegion remote = memory::import_remote(blob);
    const auto ranges = memory::peer_ranges(remote);
    take_memory(mmap, ranges);
    // Memory that a peer lets others write counts as writable, as check_access() demands.
    mmap.region.emplace(
        memory::RegionOptions{"mmap of a peer's export", remote.access() | memory::kLocalAccess},
        ranges);
  } else {
    const auto process = memory::import_in_place(blob);
    take_memory(mmap, process.ranges);
    mmap.region.emplace(memory::RegionOptions{"mmap of an export", process.access}, process.ranges);
  }
  mmap.region->start();
}

}  // namespace

Access access_of(std::uint32_t flags) noexcept {
  constexpr std::uint32_t kWriting = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
                                     DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC |
                                     DOCA_ACCESS_FLAG_PCI_READ_WRITE;
  Access access = Access::local_read;
  const auto add = [&](std::uint32_t any_of, Access added) {
    if ((flags & any_of) != 0) access = access | added;
  };
  add(kWriting, Access::local_write);
  add(DOCA_ACCESS_FLAG_RDMA_READ, Access::remote_read);
  add(DOCA_ACCESS_FLAG_RDMA_WRITE, Access::remote_write);
  add(DOCA_ACCESS_FLAG_RDMA_ATOMIC, Access::remote_atomic);
  add(DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE, Access::peer_pcie);
  return access;
}

namespace {

/// The started mmaps, by the keys that kernels use.
struct KeysOfMmaps {
  std::mutex mutex;
  std::uint32_t last = 0;
  std::map<std::uint32_t, doca_mmap*> mmaps;
};

/// Never destroyed, as destructors of a program may stop mmaps at its end.
KeysOfMmaps& keys() {
  static auto& all = *new KeysOfMmaps;
  return all;
}

void add_key(doca_mmap& mmap) {
  KeysOfMmaps& all = keys();
  const std::lock_guard lock(all.mutex);
  do {
    ++all.last;
  } while (all.last == 0 || all.mmaps.contains(all.last));
  all.mmaps.emplace(all.last, &mmap);
  mmap.key = all.last;
}

/// Removes the mmap's key. Returns false if its memory is in use.
bool remove_key(doca_mmap& mmap) noexcept {
  KeysOfMmaps& all = keys();
  const std::lock_guard lock(all.mutex);
  if (mmap.buffers() != 0) return false;
  all.mmaps.erase(std::exchange(mmap.key, 0));
  return true;
}

/// The program's memory, which a GPU may have for itself.
memory::Range range_of(const doca_mmap& mmap) {
  const std::span<std::byte> memory = mmap.memory;
  memory::Descriptor descriptor;
  if (mmap.dma_buf.valid()) {
    descriptor = {memory::DescriptorKind::dma_buf, mmap.dma_buf.get(), mmap.dma_buf_offset};
  } else if (!is_gpu_memory(memory.data())) {
    return memory::borrow_range(memory);
  }
  return memory::foreign_range(memory.data(), memory.size(), memory::Location::device, nullptr,
                               descriptor);
}

}  // namespace

std::optional<MemoryUse> MemoryUse::find(std::uint32_t key, std::uint64_t address,
                                         std::uint64_t length) noexcept {
  return find(key, address, length, false);
}

std::optional<MemoryUse> MemoryUse::find_remote(std::uint32_t key, std::uint64_t address,
                                                std::uint64_t length) noexcept {
  return find(key, address, length, true);
}

const memory::MemoryKey& MemoryUse::key(const memory::Registrar& registrar) const {
  const memory::MemoryKey* const found = region_->key(registrar, 0);
  if (found != nullptr) return *found;
  throw core::Error(core::ErrorCode::invalid_value, "an mmap without the device of the context");
}

std::optional<MemoryUse> MemoryUse::find(std::uint32_t key, std::uint64_t address,
                                         std::uint64_t length, bool is_remote) noexcept {
  KeysOfMmaps& all = keys();
  const std::lock_guard lock(all.mutex);
  const auto found = all.mmaps.find(key);
  if (found == all.mmaps.end()) return std::nullopt;
  doca_mmap& mmap = *found->second;
  if (mmap.is_imported != is_remote) return std::nullopt;
  const auto begin = reinterpret_cast<std::uintptr_t>(mmap.memory.data());
  if (address < begin || address - begin > mmap.memory.size() ||
      length > mmap.memory.size() - (address - begin)) {
    return std::nullopt;
  }
  return MemoryUse(*mmap.region, mmap.memory.subspan(address - begin, length));
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::memory::Access;
using offload::memory::Location;

void doca_mmap::end() noexcept {
  region.reset();
  export_pci.reset();
  exports_rdma.clear();
}

doca_error_t doca_mmap_create(doca_mmap** mmap) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { *mmap = new doca_mmap; });
}

doca_error_t doca_mmap_destroy(doca_mmap* mmap) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (is_used(*mmap) || !remove_key(*mmap)) {
    return DOCA_ERROR_NOT_PERMITTED;
  }
  mmap->end();
  if (mmap->was_started && mmap->free_callback != nullptr) {
    mmap->free_callback(mmap->memory.data(), mmap->memory.size(), mmap->free_cookie);
  }
  delete mmap;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_start(doca_mmap* mmap) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  if (mmap->is_imported || mmap->memory.empty() || mmap->devices.empty()) {
    return DOCA_ERROR_NOT_PERMITTED;
  }
  const doca_error_t result = guarded(__func__, [&] {
    mmap->region.emplace(offload::memory::RegionOptions{"mmap", access_of(mmap->access)},
                         std::vector{range_of(*mmap)});
    for (const DeviceUse& use : mmap->devices) {
      if (use.get()->is_rdma()) mmap->region->add_registrar(use.get()->rdma().registrar);
    }
    mmap->region->start();
    add_key(*mmap);
  });
  if (result != DOCA_SUCCESS) mmap->region.reset();
  mmap->was_started = mmap->was_started || result == DOCA_SUCCESS;
  return result;
}

doca_error_t doca_mmap_stop(doca_mmap* mmap) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!mmap->region) return DOCA_ERROR_BAD_STATE;
  const bool is_of_pci =
      mmap->is_imported && mmap->region->ranges().front().location == Location::process;
  if (is_of_pci || !remove_key(*mmap)) return DOCA_ERROR_NOT_PERMITTED;
  mmap->end();
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_add_dev(doca_mmap* mmap, doca_dev* dev) {
  if (any_null(mmap, dev)) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  if (find_device(*mmap, dev) != mmap->devices.end()) return DOCA_ERROR_ALREADY_EXIST;
  return guarded(__func__, [&] { mmap->devices.emplace_back(*dev); });
}

doca_error_t doca_mmap_rm_dev(doca_mmap* mmap, doca_dev* dev) {
  if (any_null(mmap, dev)) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  const auto found = find_device(*mmap, dev);
  if (found == mmap->devices.end()) return DOCA_ERROR_NOT_FOUND;
  mmap->devices.erase(found);
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_permissions(doca_mmap* mmap, uint32_t access) {
  if (mmap == nullptr || (access & ~kAllAccessFlags) != 0) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  mmap->access = access;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_memrange(doca_mmap* mmap, void* addr, size_t len) {
  if (any_null(mmap, addr) || len == 0) return DOCA_ERROR_INVALID_VALUE;
  if (len - 1 > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(addr)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  if (mmap->dma_buf.valid() && mmap->memory.data() == addr && mmap->memory.size() == len) {
    return DOCA_SUCCESS;
  }
  if (!mmap->memory.empty()) return DOCA_ERROR_NOT_PERMITTED;
  mmap->memory = {static_cast<std::byte*>(addr), len};
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_dmabuf_memrange(doca_mmap* mmap, int dmabuf_fd, void* addr,
                                           uint64_t dmabuf_offset, size_t len) {
  if (dmabuf_fd < 0) return DOCA_ERROR_INVALID_VALUE;
  offload::core::Fd own(::fcntl(dmabuf_fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return errno == EBADF ? DOCA_ERROR_INVALID_VALUE : DOCA_ERROR_OPERATING_SYSTEM;
  const doca_error_t result = doca_mmap_set_memrange(mmap, addr, len);
  if (result != DOCA_SUCCESS || mmap->dma_buf.valid()) {
    return result == DOCA_SUCCESS ? DOCA_ERROR_NOT_PERMITTED : result;
  }
  mmap->dma_buf = std::move(own);
  mmap->dma_buf_offset = dmabuf_offset;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_mkey(doca_mmap* mmap, doca_dev* dev, uint32_t* mkey) {
  if (any_null(mmap, dev, mkey)) return DOCA_ERROR_INVALID_VALUE;
  if (find_device(*mmap, dev) == mmap->devices.end()) return DOCA_ERROR_NOT_FOUND;
  if (mmap->key == 0) return DOCA_ERROR_BAD_STATE;
  *mkey = mmap->key;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_memrange(const doca_mmap* mmap, void** addr, size_t* len) {
  if (any_null(mmap, addr, len)) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->memory.empty()) return DOCA_ERROR_BAD_STATE;
  *addr = mmap->memory.data();
  *len = mmap->memory.size();
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_export_pci(doca_mmap* mmap, const doca_dev* dev, const void** export_desc,
                                  size_t* export_desc_len) {
  if (any_null(mmap, dev, export_desc, export_desc_len)) return DOCA_ERROR_INVALID_VALUE;
  if (!mmap->region || mmap->is_imported) return DOCA_ERROR_NOT_PERMITTED;
  if (find_device(*mmap, dev) == mmap->devices.end()) return DOCA_ERROR_NOT_FOUND;
  // Once: the program may still have what an earlier call returned.
  if (!mmap->export_pci) {
    const doca_error_t result = guarded(__func__, [&] {
      const bool writable = (mmap->access & DOCA_ACCESS_FLAG_PCI_READ_WRITE) != 0;
      mmap->export_pci = offload::memory::export_in_place(
          *mmap->region, writable ? offload::memory::kLocalAccess : Access::local_read);
    });
    if (result != DOCA_SUCCESS) return result;
  }
  *export_desc = mmap->export_pci->blob.data();
  *export_desc_len = mmap->export_pci->blob.size();
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_export_rdma(doca_mmap* mmap, const doca_dev* dev, const void** export_desc,
                                   size_t* export_desc_len) {
  if (any_null(mmap, dev, export_desc, export_desc_len)) return DOCA_ERROR_INVALID_VALUE;
  if (!mmap->region || mmap->is_imported) return DOCA_ERROR_NOT_PERMITTED;
  const auto of = find_device(*mmap, dev);
  if (of == mmap->devices.end()) return DOCA_ERROR_NOT_FOUND;
  if (!dev->is_rdma()) return DOCA_ERROR_NOT_SUPPORTED;
  // Once for each device: the program may still have what an earlier call returned.
  auto& made = mmap->exports_rdma;
  auto found =
      std::find_if(made.begin(), made.end(), [&](auto& each) { return each.first == dev; });
  const doca_error_t result = guarded(__func__, [&] {
    if (found != made.end()) return;
    const Access granted = access_of(mmap->access) & offload::memory::kRemoteAccess;
    if (granted == Access::none) {
      throw offload::core::Error(offload::core::ErrorCode::not_permitted,
                                 "the mmap has no permission of RDMA");
    }
    made.emplace_back(
        dev, offload::memory::export_remote(*mmap->region, of->get()->rdma().registrar, granted));
    found = made.end() - 1;
  });
  if (result != DOCA_SUCCESS) return result;
  *export_desc = found->second.data();
  *export_desc_len = found->second.size();
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_create_from_export(const doca_data* user_data, const void* export_desc,
                                          size_t export_desc_len, doca_dev* dev, doca_mmap** mmap) {
  if (any_null(export_desc, dev, mmap)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    auto made = std::make_unique<doca_mmap>();
    made->devices.emplace_back(*dev);
    made->is_imported = true;
    if (user_data != nullptr) made->user_data = *user_data;
    import(*made, {static_cast<const std::byte*>(export_desc), export_desc_len});
    if (made->region->ranges().front().location == Location::peer) add_key(*made);
    *mmap = made.release();
  });
}

doca_error_t doca_mmap_set_free_cb(doca_mmap* mmap, doca_mmap_memrange_free_cb_t* callback,
                                   void* cookie) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  mmap->free_callback = callback;
  mmap->free_cookie = cookie;
  mmap->was_started = false;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_user_data(doca_mmap* mmap, doca_data user_data) {
  if (mmap == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (mmap->region) return DOCA_ERROR_BAD_STATE;
  mmap->user_data = user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_user_data(const doca_mmap* mmap, doca_data* user_data) {
  if (any_null(mmap, user_data)) return DOCA_ERROR_INVALID_VALUE;
  *user_data = mmap->user_data;
  return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_num_bufs(const doca_mmap* mmap, uint32_t* num_bufs) {
  if (any_null(mmap, num_bufs)) return DOCA_ERROR_INVALID_VALUE;
  *num_bufs = static_cast<std::uint32_t>(mmap->buffers());
  return DOCA_SUCCESS;
}
