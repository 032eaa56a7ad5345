#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "memory/access.hpp"
#include "memory/region.hpp"
#include "memory/registrar.hpp"
#include "memory/remote_region.hpp"

/// Letting others into a region. An export describes it in bytes (region_blob.hpp) that travel any
/// way the caller likes; access can only become less on the way. Setup calls: they throw Error.
namespace offload::memory {

/// For another process of this machine.
struct RegionExport {
  std::vector<std::byte> blob;
  std::vector<core::Fd> fds;  ///< one a range, to be passed in this order
};

/// Lets a process map the whole of a started region. Without local_write in `granted`, a memfd's
/// descriptor is open for reading only. The mapping outlives the region. Throws Error: bad_state,
/// invalid_value as check_access, not_permitted for more than the region allows, not_supported for
/// a range that has no descriptor.
RegionExport export_region(const MemoryRegion& region, Access granted);

/// Tells a peer where `registrar`'s network card finds the ranges of a started region, until it
/// stops. `granted`: remote flags alone. It is what the peer is told; what the card itself allows
/// is the region's access. Throws Error: bad_state, not_permitted, invalid_value, not_found for a
/// registrar that is not the region's.
std::vector<std::byte> export_remote(const MemoryRegion& region, const Registrar& registrar,
                                     Access granted);

/// A region, stopped, of what another process exported, with the access it granted. Starting it
/// brings all of it into memory, so look at the lengths before if the peer is not trusted. Throws
/// Error: as RegionBlob::decode; bad_message for a blob that is for a peer, or for other
/// descriptors than come with it; what import_shared_range and map_dma_buf_range throw.
MemoryRegion import_region(std::string name, std::span<const std::byte> blob,
                           std::vector<core::Fd> fds);

/// The ranges that a peer exported. Throws Error: as RegionBlob::decode; bad_message for a blob
/// that is for a process.
RemoteRegion import_remote(std::span<const std::byte> blob);

}  // namespace offload::memory
