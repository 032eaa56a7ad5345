#include "rdma_tasks/remote_sync_event.hpp"

#include "core/error.hpp"
#include "tasks/memory/remote_region.hpp"

namespace offload::rdma {

ExportedSyncEvent::ExportedSyncEvent(const sync::SyncEvent& event, RdmaRegistrar& registrar,
                                     memory::Access granted)
    : region_({"sync event", memory::kLocalAccess | granted},
              {memory::borrow_range(event.memory())}) {
  region_.add_registrar(registrar);
  region_.start();
  blob_ = memory::export_remote(region_, registrar, granted);
}

RemoteAddress import_sync_event(std::span<const std::byte> blob) {
  const memory::RemoteRegion region = memory::import_remote(blob);
  constexpr std::uint64_t kWords = sizeof(kernels::SyncEventWords);
  if (region.ranges().size() != 1 || region.ranges()[0].length < kWords ||
      region.ranges()[0].address % kWords != 0) {
    throw core::Error(core::ErrorCode::bad_message, "the peer's memory is not a sync event");
  }
  return {region.ranges()[0], 0, region.access()};
}

}  // namespace offload::rdma
