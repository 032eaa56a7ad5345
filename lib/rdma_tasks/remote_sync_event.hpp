#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "memory/region.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma_tasks/operation.hpp"
#include "tasks/memory/remote_region.hpp"
#include "tasks/sync/sync_event.hpp"

namespace offload::rdma {

/// A sync event that peers work on by RemoteSyncEventTasks: its memory is registered for as long as
/// this lives. The event's publisher is sync::Publisher::peer. Event and registrar outlive it, and
/// no peer's task is under way at its end.
class ExportedSyncEvent {
 public:
  /// `granted`: what peers may do, remote_read for get, remote_write for set, remote_atomic for
  /// add. Throws Error: invalid_value for flags that are not remote, what registering throws.
  ExportedSyncEvent(const sync::SyncEvent& event, RdmaRegistrar& registrar,
                    memory::Access granted = memory::kRemoteAccess)
      : region_({"sync event", memory::kLocalAccess | granted},
                {memory::borrow_range(event.memory())}) {
    region_.add_registrar(registrar);
    region_.start();
    blob_ = memory::export_remote(region_, registrar, granted);
  }

  /// Returns the bytes for import_sync_event() of the peer.
  [[nodiscard]] const std::vector<std::byte>& blob() const noexcept { return blob_; }

 private:
  memory::MemoryRegion region_;
  std::vector<std::byte> blob_;
};

/// Imports a peer's event, for RemoteSyncEventTask::event. Throws Error as memory::import_remote()
/// does; bad_message for bytes that cannot be an event.
inline RemoteAddress import_sync_event(std::span<const std::byte> blob) {
  const memory::RemoteRegion region = memory::import_remote(blob);
  constexpr std::uint64_t kWords = sizeof(kernels::SyncEventWords);
  if (region.ranges().size() != 1 || region.ranges()[0].length < kWords ||
      region.ranges()[0].address % kWords != 0) {
    throw core::Error(core::ErrorCode::bad_message, "the peer's memory is not a sync event");
  }
  return {region.ranges()[0], 0, region.access()};
}

}  // namespace offload::rdma
