#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/channel_packets.hpp"
#include "kernels/group.hpp"

/// The request that a service reads and the responses that it writes.
namespace offload::kernels {

/// The 16 bytes that one lane moves at a time.
struct alignas(16) Block {
  std::uint32_t words[4];
};

/// The bytes of `block` in reverse order.
OFFLOAD_HOST_DEVICE inline Block reversed(Block block) {
#if defined(__CUDA_ARCH__)
  return {{swap_bytes(block.words[3]), swap_bytes(block.words[2]), swap_bytes(block.words[1]),
           swap_bytes(block.words[0])}};
#else
  std::uint64_t halves[2];
  std::memcpy(halves, &block, sizeof block);
  const std::uint64_t swapped[2] = {__builtin_bswap64(halves[1]), __builtin_bswap64(halves[0])};
  std::memcpy(&block, swapped, sizeof block);
  return block;
#endif
}

/// A whole request as contiguous bytes: laid out in the staging from its packets or as part of a
/// batch, or a plain payload in its slot. Any 16 bytes that overlap the payload can be read; those
/// outside of it mean nothing.
class Request {
 public:
  /// `data`: has kSlack readable bytes before it and after its end.
  OFFLOAD_HOST_DEVICE Request(const std::uint8_t* data, std::uint32_t length)
      : data_(data), length_(length) {}

  OFFLOAD_HOST_DEVICE std::uint32_t length() const { return length_; }

  OFFLOAD_HOST_DEVICE std::uint8_t byte(std::uint32_t offset) const { return data_[offset]; }

  /// The 16 bytes from `offset` on, which is above -16 and below length(). kAlignment: what they
  /// are aligned to in memory at least.
  template <std::uint32_t kAlignment = 1>
  OFFLOAD_HOST_DEVICE Block block(std::int64_t offset) const {
    Block block;
#if defined(__CUDA_ARCH__)
    if (kAlignment % sizeof(Block) == 0) return *reinterpret_cast<const Block*>(data_ + offset);
    // Two aligned loads and a shift, without a branch, so that the loads of several blocks are
    // under way together. A message's lanes are misaligned by one amount: the second load of a lane
    // is its neighbour's first, or its own first again, and hits in L1.
    const std::uint8_t* const from = data_ + offset;
    const auto shift =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from)) % sizeof(Block);
    const auto* at = reinterpret_cast<const uint4*>(from - shift);
    const uint4 low = at[0];
    const uint4 high = at[shift == 0 ? 0 : 1];
    std::uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    // Indices are compile-time constants, or the array would leave the registers.
    for (int i = 0; i < 6; ++i) w[i] = (shift & 8U) ? w[i + 2] : w[i];
    for (int i = 0; i < 5; ++i) w[i] = (shift & 4U) ? w[i + 1] : w[i];
    for (int i = 0; i < 4; ++i) block.words[i] = __funnelshift_r(w[i], w[i + 1], 8 * (shift % 4));
#else
    std::memcpy(&block, data_ + offset, sizeof block);
#endif
    return block;
  }

 private:
  const std::uint8_t* data_;
  std::uint32_t length_;
};

/// In a lap in which the slot is rewritten (channel_layout.hpp), writes the packets that a message
/// of `length` bytes does not fill. Every lane of the group must call it before any lane writes the
/// header.
template <class Group>
OFFLOAD_HOST_DEVICE void rewrite_rest(const Group& group, const Slot& slot, std::uint32_t flag,
                                      std::uint32_t length) {
  if (__builtin_expect(!rewrites_slot(flag), 1)) return;
  for (std::uint32_t i = packets_filled(length) + group.lane(); i < kMaxPackets;
       i += group.size()) {
    store_packet(slot.packets + i, {{}, flag});
  }
  // Before the header: no reader waits for these, and they must not come after the next lap's.
  group.sync();
  release_plain_payload();
}

/// A response's header. `count`: of the messages of a batch; 0: it is one message.
OFFLOAD_HOST_DEVICE constexpr Packet make_header(std::uint32_t flag, std::uint32_t length,
                                                 std::uint32_t count,
                                                 ResponseStatus status = ResponseStatus::ok) {
  return {{length, static_cast<std::uint32_t>(status), count}, flag};
}

/// Writes a response of at most kMaxPacketPayload bytes as self-validating packets.
class PacketResponse {
 public:
  /// The alignment, in bytes, of the blocks that fill() requests, also of those in the request.
  static constexpr std::uint32_t kAlignment = 4;

  /// `count`: of the messages of a batch; 0: it is one message.
  OFFLOAD_HOST_DEVICE PacketResponse(Slot slot, std::uint32_t flag, std::uint32_t length,
                                     std::uint32_t count = 0,
                                     ResponseStatus status = ResponseStatus::ok)
      : slot_(slot), flag_(flag), length_(length), count_(count), status_(status) {}

  OFFLOAD_HOST_DEVICE std::uint32_t length() const { return length_; }

  /// Writes and publishes the response: `block_at(offset)` returns its bytes from `offset` on.
  /// Every lane of the group calls it once.
  template <class Group, class BlockAt>
  OFFLOAD_HOST_DEVICE void fill(const Group& group, BlockAt block_at) const {
    rewrite_rest(group, slot_, flag_, length_);
    const std::uint32_t count = packets_for(length_);
    for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
      // The header last, as readers look there first.
      const std::uint32_t index = count - 1 - i;
      const Block block = index == 0
                              ? Block{{length_, static_cast<std::uint32_t>(status_), count_, 0}}
                              : block_at((index - 1) * kPacketData);
      store_packet(slot_.packets + index,
                   {{block.words[0], block.words[1], block.words[2]}, flag_});
    }
  }

 private:
  Slot slot_;
  std::uint32_t flag_;
  std::uint32_t length_;
  std::uint32_t count_;
  ResponseStatus status_;
};

/// Writes a response as plain bytes without publishing it.
class FlatResponse {
 public:
  static constexpr std::uint32_t kAlignment = sizeof(Block);

  /// `to`: 16-byte aligned, with room for `length` rounded up to a multiple of 16.
  OFFLOAD_HOST_DEVICE FlatResponse(std::uint8_t* to, std::uint32_t length)
      : to_(to), length_(length) {}

  OFFLOAD_HOST_DEVICE std::uint32_t length() const { return length_; }

  /// Writes the response; called as PacketResponse::fill.
  template <class Group, class BlockAt>
  OFFLOAD_HOST_DEVICE void fill(const Group& group, BlockAt block_at) const {
    // Each lane loads this number of blocks before it writes the first, to have several reads in
    // flight.
    constexpr std::uint32_t kInFlight = 8;
    const std::uint32_t step = group.size() * static_cast<std::uint32_t>(sizeof(Block));
    std::uint32_t offset = group.lane() * static_cast<std::uint32_t>(sizeof(Block));
    for (; offset + (kInFlight - 1) * step < length_; offset += kInFlight * step) {
      Block blocks[kInFlight];
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < kInFlight; ++i) blocks[i] = block_at(offset + i * step);
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < kInFlight; ++i) put(offset + i * step, blocks[i]);
    }
    for (; offset + step < length_; offset += kOfRest * step) fill_rest(offset, step, block_at);
    if (offset < length_) put(offset, block_at(offset));
  }

 private:
  /// Blocks of a lane's rest that are loaded before the first is written.
  static constexpr std::uint32_t kOfRest = 4;

  /// Writes up to kOfRest blocks, `step` apart. Without a branch between the loads, or one would
  /// wait for the one before: beyond the end, the first is loaded again, and hits in L1.
  template <class BlockAt>
  OFFLOAD_HOST_DEVICE void fill_rest(std::uint32_t first, std::uint32_t step,
                                     BlockAt block_at) const {
    Block blocks[kOfRest];
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < kOfRest; ++i) {
      const std::uint32_t offset = first + i * step;
      blocks[i] = block_at(offset < length_ ? offset : first);
    }
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < kOfRest; ++i) {
      const std::uint32_t offset = first + i * step;
      if (offset < length_) put(offset, blocks[i]);
    }
  }

  OFFLOAD_HOST_DEVICE void put(std::uint32_t offset, const Block& block) const {
    *reinterpret_cast<Block*>(to_ + offset) = block;
  }

  std::uint8_t* to_;
  std::uint32_t length_;
};

/// Writes the first `size` bytes of `block` to any address.
OFFLOAD_HOST_DEVICE inline void store_bytes(std::uint8_t* to, const Block& block,
                                            std::uint32_t size) {
#if defined(__CUDA_ARCH__)
  // Indices are compile-time constants, or the block would leave the registers.
  if (reinterpret_cast<std::uintptr_t>(to) % 4 == 0 && size % 4 == 0) {
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (4 * i < size) reinterpret_cast<std::uint32_t*>(to)[i] = block.words[i];
    }
  } else {
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < sizeof(Block); ++i) {
      if (i < size) to[i] = static_cast<std::uint8_t>(block.words[i / 4] >> (8 * (i % 4)));
    }
  }
#else
  std::memcpy(to, &block, size);
#endif
}

/// Writes a response to any address, without publishing it. Nothing outside of it is written, as
/// other lanes write there at the same time; except by a SingleLane, the only one that writes: it
/// writes whole blocks, up to kSlack behind the end.
class UnalignedResponse {
 public:
  static constexpr std::uint32_t kAlignment = 1;

  OFFLOAD_HOST_DEVICE UnalignedResponse(std::uint8_t* to, std::uint32_t length)
      : to_(to), length_(length) {}

  OFFLOAD_HOST_DEVICE std::uint32_t length() const { return length_; }

  /// Writes the response; called as PacketResponse::fill.
  template <class Group, class BlockAt>
  OFFLOAD_HOST_DEVICE void fill(const Group& group, BlockAt block_at) const {
    constexpr std::uint32_t kSize = sizeof(Block);
    constexpr bool kWholeBlocks = std::is_same_v<Group, SingleLane>;
    for (std::uint32_t offset = group.lane() * kSize; offset < length_;
         offset += group.size() * kSize) {
      const std::uint32_t left = length_ - offset;
      store_bytes(to_ + offset, block_at(offset), left < kSize && !kWholeBlocks ? left : kSize);
    }
  }

 private:
  std::uint8_t* to_;
  std::uint32_t length_;
};

/// A callback that does nothing.
struct Nothing {
  OFFLOAD_HOST_DEVICE void operator()() const {}
};

/// Writes a response of more than kMaxPacketPayload bytes as plain bytes, then publishes it by its
/// header. Between the two, every lane calls `before_fence`.
template <class BeforeFence = Nothing>
class PlainResponse {
 public:
  static constexpr std::uint32_t kAlignment = FlatResponse::kAlignment;

  /// `count`: as PacketResponse's.
  OFFLOAD_HOST_DEVICE PlainResponse(Slot slot, std::uint32_t flag, std::uint32_t length,
                                    std::uint32_t count = 0, const BeforeFence& before_fence = {})
      : slot_(slot), flag_(flag), length_(length), count_(count), before_fence_(before_fence) {}

  OFFLOAD_HOST_DEVICE std::uint32_t length() const { return length_; }

  /// Writes the response; called as PacketResponse::fill.
  template <class Group, class BlockAt>
  OFFLOAD_HOST_DEVICE void fill(const Group& group, BlockAt block_at) const {
    FlatResponse(slot_.plain(), length_).fill(group, block_at);
    publish(group);
  }

  /// Publishes what was written to the slot's room for plain bytes.
  template <class Group>
  OFFLOAD_HOST_DEVICE void publish(const Group& group) const {
    rewrite_rest(group, slot_, flag_, length_);
    group.sync();
    before_fence_();
    if (group.lane() == 0) {
      release_plain_payload();
      store_packet(slot_.packets, make_header(flag_, length_, count_));
    }
  }

 private:
  Slot slot_;
  std::uint32_t flag_;
  std::uint32_t length_;
  std::uint32_t count_;
  BeforeFence before_fence_;
};

}  // namespace offload::kernels
