#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "memory/access.hpp"
#include "memory/region.hpp"

/// Exports of regions to other processes. An export is a blob (region_blob.hpp) that the
/// caller transmits by any means. An importer never gets more access than the exporter has. Setup
/// calls: they throw Error.
namespace offload::memory {

/// An export for another process of this machine.
struct RegionExport {
  std::vector<std::byte> blob;
  std::vector<core::Fd> fds;  ///< one for each range, to be passed in this order
};

/// Exports a started region for a process to map all of it. Without local_write in `granted`, the
/// descriptor of a memfd is open for reading only. The mapping may outlive the region. Throws
/// Error: bad_state, invalid_value as check_access, not_permitted for more than the region allows,
/// not_supported for a range that has no descriptor.
RegionExport export_region(const MemoryRegion& region, Access granted);

/// Throws Error: bad_state for a region that is not started, not_permitted for more than it allows.
void require_allowed(const MemoryRegion& region, Access granted);

/// Maps what another process exported: a stopped region with the access that was granted. start()
/// brings all of it into memory, so check the lengths first if the exporter is not trusted. A
/// dma-buf whose exporter cannot map it, as a GPU's driver, becomes a range that devices alone
/// reach (reserve_dma_buf_range). Throws Error: as RegionBlob::decode; bad_message for a blob for a
/// peer, or if the number of descriptors is wrong; and what import_shared_range and
/// map_dma_buf_range throw.
MemoryRegion import_region(std::string name, std::span<const std::byte> blob,
                           std::vector<core::Fd> fds);

}  // namespace offload::memory
