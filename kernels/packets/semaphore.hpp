#pragma once

#include <cstdint>

#include "kernels/packets/ring.hpp"

/// Semaphores: items that one side hands to the other, between a kernel and a thread of the CPU in
/// either direction, and between kernels. Each item has its own status and an index, so that the
/// taker may check any, and items may be done in another order than that of arrival.
namespace offload::kernels::packets {

enum class ItemStatus : std::uint32_t {
  free,     ///< the giver's, to be filled
  ready,    ///< the taker's
  error,    ///< the taker's: the giver could not fill it
  earlier,  ///< neither's yet: the item is still in use for an index that is a lap before
};

/// Items in memory that both sides see: pinned memory of the host, or of the GPU between kernels.
/// Statuses are zeroed before either begins.
struct Semaphore {
  struct alignas(64) Status {
    std::uint32_t value;  ///< of kStatusBits, and above them the lap: the index by the items
  };
  static constexpr std::uint32_t kStatusBits = 2;

  Status* statuses;
  std::uint8_t* items;
  std::uint32_t item_bytes;
  std::uint32_t log2;  ///< of the number of items

  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t place(std::uint64_t index) const {
    return index & ((std::uint64_t{1} << log2) - 1);
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint8_t* item(std::uint64_t index) const {
    return items + place(index) * item_bytes;
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t* status(std::uint64_t index) const {
    return &statuses[place(index)].value;
  }
  /// Returns the status of item `index` when it is free.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t free_value(std::uint64_t index) const {
    return static_cast<std::uint32_t>(index >> log2) << kStatusBits;
  }
};

/// Returns the status of item `index`, with acquire: data that the side that set it has written can
/// be read, and data that it has read can be overwritten. Pairs with set_status() of the other
/// side.
OFFLOAD_HOST_DEVICE inline ItemStatus status_of(const Semaphore& semaphore, std::uint64_t index) {
  // An impossible value, so that each call executes the fence.
  const std::uint32_t value = take_position(semaphore.status(index), ~std::uint32_t{0});
  const std::uint32_t ahead = value - semaphore.free_value(index);
  return ahead > static_cast<std::uint32_t>(ItemStatus::error) ? ItemStatus::earlier
                                                               : static_cast<ItemStatus>(ahead);
}

/// Hands item `index` over: to the taker, or as free to the giver of the index a lap later. With
/// release: the item has been written or read. Every lane of the group must call it; the group's
/// sync orders the earlier accesses of its lanes. Pairs with status_of().
template <class Group>
OFFLOAD_HOST_DEVICE void set_status(const Group& group, const Semaphore& semaphore,
                                    std::uint64_t index, ItemStatus status) {
  group.sync();
  if (group.lane() == 0) {
    const std::uint64_t next_lap = std::uint64_t{1} << semaphore.log2;
    publish_position(semaphore.status(index),
                     status == ItemStatus::free
                         ? semaphore.free_value(index + next_lap)
                         : semaphore.free_value(index) + static_cast<std::uint32_t>(status));
  }
}

/// Waits until item `index` is the taker's (`to_take`) or the giver's, within the limit. `status`:
/// its status then. WorkResult::timed_out if the limit is reached.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult wait_for_item(const Group& group, const Semaphore& semaphore,
                                             std::uint64_t index, bool to_take,
                                             const WaitLimit& limit, ItemStatus& status) {
  Wait wait(limit);
  for (;;) {
    std::uint32_t seen = 0;
    if (group.lane() == 0) seen = static_cast<std::uint32_t>(status_of(semaphore, index));
    status = static_cast<ItemStatus>(group.from_first(seen));
    const bool is_filled = status == ItemStatus::ready || status == ItemStatus::error;
    if (to_take ? is_filled : status == ItemStatus::free) {
      group.sync();  // lane 0 acquired for all
      return WorkResult::done;
    }
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return WorkResult::timed_out;
  }
}

/// Returns the index of an item for one of several givers, or takers, of a semaphore. `counter`: in
/// memory that they share, 0 at first.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint64_t next_index(const Group& group, std::uint64_t& counter) {
  return from_first_64(group, group.lane() == 0 ? rdma::fetch_add_acq_rel(&counter, 1) : 0);
}

/// Hands over an item of each lane that has one, from index `next` on, which is incremented by
/// their number; `write`(item) fills one. Every lane of the group, the only giver, must call it.
/// Returns the number of items: 0 also if not all of them were free within the limit; then none is
/// handed over.
template <class Group, class Write>
OFFLOAD_HOST_DEVICE std::uint32_t hand_over(const Group& group, const Semaphore& semaphore,
                                            std::uint64_t& next, bool has_one,
                                            const WaitLimit& limit, const Write& write) {
  std::uint32_t before = 0;
  const std::uint32_t count = sum_of(group, has_one ? 1U : 0U, before);
  if (count == 0 || count > std::uint64_t{1} << semaphore.log2) return 0;
  const std::uint64_t index = next + before;
  ItemStatus status = ItemStatus::free;
  if (has_one) wait_for_item(SingleLane{}, semaphore, index, false, limit, status);
  if (!group.all(status == ItemStatus::free)) return 0;
  if (has_one) {
    write(semaphore.item(index));
    set_status(SingleLane{}, semaphore, index, ItemStatus::ready);
  }
  next += count;
  return count;
}

}  // namespace offload::kernels::packets
