#pragma once

#include <cstdint>

#include "kernels/memory_order.hpp"

/// A sync event: a 64-bit counter in memory that threads, processes and a GPU see alike. A
/// publisher sets it or adds to it; a subscriber waits until it is greater than a value it knows.
/// Writes before a set or an add are visible after a get that sees it.
namespace offload::kernels {

/// Its form in memory, alone in its cache line.
struct alignas(64) SyncEventWords {
  std::uint64_t value;
  std::uint32_t sleepers;  ///< CPU threads that a publisher has to wake; not the GPU's concern
  std::uint32_t reserved[13];
};
static_assert(sizeof(SyncEventWords) == 64);

/// Acquires: pairs with the release in sync_event_set and sync_event_add.
OFFLOAD_HOST_DEVICE inline std::uint64_t sync_event_get(const SyncEventWords& event) {
  return load_acquire_sys(&event.value);
}

/// Releases: pairs with sync_event_get.
OFFLOAD_HOST_DEVICE inline void sync_event_set(SyncEventWords& event, std::uint64_t value) {
  store_release_sys(&event.value, value);
}

/// Acquires and releases: pairs with sync_event_get and with other adds. Returns the value before.
/// A GPU's adds are atomic among its own threads; beside a CPU that adds at the same time only
/// where cudaDevAttrHostNativeAtomicSupported says so.
OFFLOAD_HOST_DEVICE inline std::uint64_t sync_event_add(SyncEventWords& event,
                                                        std::uint64_t count) {
  return fetch_add_acq_rel_sys(&event.value, count);
}

/// Polls until the event is greater than `threshold` or `give_up()`, which is asked after each look
/// and bounds the wait. Returns whether it is greater.
template <class GiveUp>
OFFLOAD_HOST_DEVICE bool sync_event_wait_greater(const SyncEventWords& event,
                                                 std::uint64_t threshold, GiveUp give_up) {
  while (sync_event_get(event) <= threshold) {
    if (give_up()) return sync_event_get(event) > threshold;
  }
  return true;
}

/// As sync_event_wait_greater(), until the bits of `mask` are others than those of `value`.
template <class GiveUp>
OFFLOAD_HOST_DEVICE bool sync_event_wait_not_equal(const SyncEventWords& event, std::uint64_t value,
                                                   std::uint64_t mask, GiveUp give_up) {
  while (((sync_event_get(event) ^ value) & mask) == 0) {
    if (give_up()) return ((sync_event_get(event) ^ value) & mask) != 0;
  }
  return true;
}

}  // namespace offload::kernels
