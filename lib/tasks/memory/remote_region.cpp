#include "tasks/memory/remote_region.hpp"

#include <utility>
#include <variant>

#include "core/error.hpp"
#include "memory/region_export.hpp"

namespace offload::memory {

std::vector<std::byte> export_remote(const MemoryRegion& region, const Registrar& registrar,
                                     Access granted) {
  if (granted == Access::none || !includes(kRemoteAccess, granted)) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "a peer can be granted only remote flags, not " + to_string(granted));
  }
  require_allowed(region, granted);
  std::vector<RemoteRange> remote;
  for (const Range& range : region.ranges()) {
    const MemoryKey* key = region.key(registrar, remote.size());
    if (key == nullptr) {
      throw core::Error(
          core::ErrorCode::not_found,
          "memory region '" + region.name() + "' is not registered with " + registrar.name());
    }
    remote.push_back({reinterpret_cast<std::uint64_t>(range.address), range.length, key->remote});
  }
  return RegionBlob{granted, std::move(remote)}.encode();
}

RemoteRegion import_remote(std::span<const std::byte> blob) {
  RegionBlob described = RegionBlob::decode(blob);
  auto* remote = std::get_if<std::vector<RemoteRange>>(&described.ranges);
  if (remote == nullptr) {
    throw core::Error(core::ErrorCode::bad_message, "the memory region was exported for a process");
  }
  return {described.access, std::move(*remote)};
}

std::vector<Range> peer_ranges(const RemoteRegion& remote) {
  std::vector<Range> ranges;
  for (const RemoteRange& from : remote.ranges()) {
    Range& range = ranges.emplace_back();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of a peer, dereferenced nowhere
    range.address = reinterpret_cast<std::byte*>(from.address);
    range.length = from.length;
    range.location = Location::peer;
    range.key = from.key;
  }
  return ranges;
}

}  // namespace offload::memory
