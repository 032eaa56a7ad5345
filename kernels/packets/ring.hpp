#pragma once

#include <cstdint>

#include "kernels/group.hpp"
#include "kernels/memory_order.hpp"
#include "kernels/platform.hpp"
#include "kernels/rdma/shared_word.hpp"
#include "kernels/rdma/wait.hpp"

/// The rings of an AF_XDP socket as the Linux kernel maps them (linux/if_xdp.h,
/// Documentation/networking/af_xdp.rst), for threads of a CPU or a GPU. One side writes entries and
/// the producer's word, the other reads them and writes the consumer's word; both words count
/// entries and wrap at 32 bits.
namespace offload::kernels::packets {

using rdma::Wait;
using rdma::WaitLimit;
using rdma::WorkResult;

/// struct xdp_desc: a frame with a packet.
struct FrameDescriptor {
  std::uint64_t address;  ///< of the packet's first byte, from the begin of the frames' memory
  std::uint32_t length;
  std::uint32_t options;
};
static_assert(sizeof(FrameDescriptor) == 16, "as the kernel has it");

/// XDP_RING_NEED_WAKEUP: the side that fills the ring must wake the driver by a system call.
inline constexpr std::uint32_t kNeedWakeup = 1;

template <class Entry>
struct Ring {
  Entry* entries;
  std::uint32_t* producer;
  std::uint32_t* consumer;
  const std::uint32_t* flags;
  std::uint32_t mask;  ///< entries, a power of two, less one

  OFFLOAD_HOST_DEVICE Entry& at(std::uint32_t position) const { return entries[position & mask]; }
};

/// Returns the other side's position; with acquire if it is no longer `known`: data written before
/// it can be read, and data read before it can be overwritten. Pairs with the other side's
/// publish_position(), which is the kernel's smp_store_release().
OFFLOAD_HOST_DEVICE inline std::uint32_t take_position(const std::uint32_t* word,
                                                       std::uint32_t known) {
  const std::uint32_t position = look_sys(word);
  if (position != known) acquire_looked_sys();
  return position;
}

/// Stores this side's position, with release: its entries, and the frames that they name, have been
/// written or read. Pairs with the other side's take_position(), which is the kernel's
/// smp_load_acquire().
OFFLOAD_HOST_DEVICE inline void publish_position(std::uint32_t* word, std::uint32_t position) {
  store_release_sys(word, position);
}

/// Returns the sum of the values of all lanes, in each lane. `before`: the sum of the lanes before
/// this one.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t sum_of(const Group& group, std::uint32_t value,
                                         std::uint32_t& before) {
  before = group.exclusive_sum(value);
  // The last lane has the sum, and all others contribute 0 to the exclusive or.
  return group.combine_xor(group.lane() + 1 == group.size() ? before + value : 0);
}

/// Positions of a ring that several groups fill or empty, in their memory: in the GPU's for a GPU.
struct alignas(64) RingOrder {
  std::uint64_t reserved;   ///< after the last position in use
  std::uint64_t published;  ///< behind the last one that the other side may see
  std::uint64_t taken;      ///< of the ring's other direction: entries that were read
  std::uint64_t taking;     ///< not 0: a thread reads
};

/// Reserves `count` positions for this group in a ring that several groups fill. The other side
/// gets the entries in the order of these calls, no matter which group writes first; a position
/// that is not published blocks all later ones. There is always room (see Frames).
template <class Group>
OFFLOAD_HOST_DEVICE std::uint64_t reserve(const Group& group, RingOrder& order,
                                          std::uint32_t count) {
  // Relaxed would do: only the number is used.
  return from_first_64(group,
                       group.lane() == 0 ? rdma::fetch_add_acq_rel(&order.reserved, count) : 0);
}

/// Publishes the `count` entries from `position` on to the other side, after all earlier ones.
/// Waits, within the limit, for the groups that reserved those. WorkResult::timed_out: the ring is
/// stuck, because one of them does not publish.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult publish_in_order(const Group& group, std::uint32_t* producer,
                                                RingOrder& order, std::uint64_t position,
                                                std::uint32_t count, const WaitLimit& limit) {
  group.sync();  // the release below is of all lanes' entries
  bool published = true;
  if (group.lane() == 0) {
    Wait wait(limit);
    // With acquire, so that the producer's release is of the others' entries too. Pairs with the
    // release of the one before.
    while (published && rdma::load_acquire(&order.published) != position) {
      published = !wait.is_over();
    }
    if (published) {
      publish_position(producer, static_cast<std::uint32_t>(position + count));
      // With release, pairs with the acquire above of the next one.
      rdma::store_release(&order.published, position + count);
    }
  }
  return group.from_first(published ? 1 : 0) != 0 ? WorkResult::done : WorkResult::timed_out;
}

}  // namespace offload::kernels::packets
