#pragma once

#include <cstdint>

#include "kernels/packets/ring.hpp"

/// The memory of packets (UMEM of AF_XDP), and the home to which each unused frame returns.
namespace offload::kernels::packets {

/// A ring of free frames: a fill ring, from which the driver takes frames to receive into, or a
/// ring of the same form from which a queue takes frames to send. Many give, one takes.
struct FrameRing {
  Ring<std::uint64_t> ring;
  RingOrder* order;
};

#if defined(__CUDA_ARCH__)
/// Copies whole pieces of 16 bytes, at least `bytes`; both begin with one. A lane has several loads
/// under way at once: each of memory of the host is a round trip over PCIe.
template <std::uint32_t kAtOnce, class Group>
__device__ void copy_pieces(const Group& group, void* to, const void* from, std::uint32_t bytes) {
  const std::uint32_t count = (bytes + 15) / 16;
  for (std::uint32_t base = group.lane(); base < count; base += kAtOnce * group.size()) {
    uint4 pieces[kAtOnce];
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t at = base + i * group.size();
      if (at < count) pieces[i] = static_cast<const uint4*>(from)[at];
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t at = base + i * group.size();
      if (at < count) static_cast<uint4*>(to)[at] = pieces[i];
    }
  }
}
#endif

/// Frames of equal size. Each has a home, the ring that it comes from and returns to: frame i that
/// of number i / frames_per_home. A frame is in one place at a time, and each ring has a place for
/// every frame that may get there; so no ring is ever full.
struct Frames {
  std::uint8_t* bytes;
  const FrameRing* homes;
  std::uint32_t frame_bytes;  ///< a power of two
  std::uint32_t frames_per_home;
  std::uint32_t home_count;

  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t total_bytes() const {
    return std::uint64_t{frame_bytes} * frames_per_home * home_count;
  }
  /// Returns whether a packet is within one frame.
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool holds(const FrameDescriptor& packet) const {
    return packet.address < total_bytes() &&
           packet.length <= frame_bytes - (packet.address & (frame_bytes - 1));
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t frame_of(std::uint64_t address) const {
    return address & ~std::uint64_t{frame_bytes - 1};
  }
  /// Returns the number of the frame's home, or home_count for an address in no frame.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t home_of(std::uint64_t address) const {
    if (address >= total_bytes()) return home_count;
    return static_cast<std::uint32_t>(address / frame_bytes / frames_per_home);
  }
};

/// Gives frames back to their homes: for each lane that has one, the frame that contains `address`.
/// Every lane must call it. WorkResult::timed_out: another group has begun to give frames back and
/// does not finish.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult give_back(const Group& group, const Frames& frames, bool has_one,
                                         std::uint64_t address, const WaitLimit& limit) {
  const std::uint32_t home = has_one ? frames.home_of(address) : frames.home_count;
  for (std::uint32_t i = 0; i < frames.home_count; ++i) {
    std::uint32_t before = 0;
    const std::uint32_t count = sum_of(group, home == i ? 1U : 0U, before);
    if (count == 0) continue;
    const FrameRing& to = frames.homes[i];
    const std::uint64_t position = reserve(group, *to.order, count);
    if (home == i) {
      to.ring.at(static_cast<std::uint32_t>(position) + before) = frames.frame_of(address);
    }
    const WorkResult result =
        publish_in_order(group, to.ring.producer, *to.order, position, count, limit);
    if (result != WorkResult::done) return result;
  }
  return WorkResult::done;
}

/// Takes up to `most` frames, one for each lane, out of a ring from which only this group takes.
/// Returns the number of frames: lanes below it have theirs in `address`.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t take_frames(const Group& group, const FrameRing& from,
                                              std::uint32_t most, std::uint64_t& address) {
  std::uint64_t taken = 0;
  std::uint32_t count = 0;
  if (group.lane() == 0) {
    taken = from.order->taken;
    const auto begin = static_cast<std::uint32_t>(taken);
    // Acquire: the frame is read no more. Pairs with publish_in_order() of give_back().
    count = take_position(from.ring.producer, begin) - begin;
  }
  count = group.from_first(count);
  if (count > most) count = most;
  if (count > group.size()) count = group.size();
  if (count == 0) return 0;
  taken = from_first_64(group, taken);
  if (group.lane() < count) {
    address = from.ring.at(static_cast<std::uint32_t>(taken) + group.lane());
  }
  group.sync();  // all have read theirs
  if (group.lane() == 0) {
    from.order->taken = taken + count;
    publish_position(from.ring.consumer, static_cast<std::uint32_t>(taken) + count);
  }
  return count;
}

/// The maximum number of frames that recycle() takes, or one for each lane: a group may send more
/// than it has lanes before it calls it again.
inline constexpr std::uint32_t kRecycledAtOnce = 64;

/// Takes frames that the driver has sent out of a completion ring, and gives them back; does
/// nothing while another group does so. Returns the number of frames.
template <class Group>
OFFLOAD_HOST_DEVICE std::uint32_t recycle(const Group& group, const Frames& frames,
                                          const FrameRing& completions, const WaitLimit& limit) {
  bool mine = false;
  // One group at a time; the exchange acquires what the one before has released.
  if (group.lane() == 0) mine = rdma::exchange_seq_cst(&completions.order->taking, 1) == 0;
  if (group.from_first(mine ? 1 : 0) == 0) return 0;
  std::uint32_t recycled = 0;
  for (std::uint32_t count = group.size(); count == group.size() && recycled < kRecycledAtOnce;) {
    std::uint64_t address = 0;
    count = take_frames(group, completions, group.size(), address);
    recycled += count;
    if (count == 0) break;
    if (give_back(group, frames, group.lane() < count, address, limit) != WorkResult::done) break;
  }
  group.sync();
  if (group.lane() == 0) rdma::store_release(&completions.order->taking, 0);
  return recycled;
}

}  // namespace offload::kernels::packets
