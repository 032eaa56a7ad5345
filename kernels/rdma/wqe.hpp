#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/platform.hpp"

/// Work queue entries in the format of mlx5 cards: what is written into a send or receive queue's
/// ring, the same by a kernel and by a CPU thread. The public layout is that of
/// infiniband/mlx5dv.h, whose structs device code can use but whose functions it cannot; a test
/// compares the two byte for byte.
///
/// A ring is an array of basic blocks of 64 bytes. An entry is a number of segments of 16 bytes,
/// its first at the begin of a block: a control segment, then, as the operation has them, a remote
/// address, an atomic's operands, and local buffers or inline data. It may wrap around the ring's
/// end. All fields are big endian.
namespace offload::kernels::rdma {

/// Bytes of a basic block (MLX5_SEND_WQE_BB).
inline constexpr std::uint32_t kBlockBytes = 64;
/// An entry's length is a field of six bits.
inline constexpr std::uint32_t kMostSegments = 63;

/// Operations (MLX5_OPCODE_*).
enum class Opcode : std::uint8_t {
  nop = 0x00,
  rdma_write = 0x08,
  rdma_write_with_imm = 0x09,
  send = 0x0a,
  send_with_imm = 0x0b,
  wait = 0x0f,  ///< holds back the entries behind it; not among the public numbers
  rdma_read = 0x10,
  compare_swap = 0x11,
  fetch_add = 0x12,
  dump = 0x23,  ///< reads local buffers and drops them; nor is this
};

/// The flags of an entry (MLX5_WQE_CTRL_*), which can be combined.
enum SendFlag : std::uint8_t {
  kSolicited = 1U << 1,   ///< the peer's completion event comes for it
  kSignaled = 2U << 2,    ///< it makes a completion; without it only an error does
  kSmallFence = 1U << 5,  ///< after the reads and atomics before it
  kFence = 4U << 5,       ///< after all operations before it
};

/// 16 bytes, as in a ring.
struct alignas(16) Segment {
  std::uint32_t words[4];
};
inline constexpr std::uint32_t kSegmentsPerBlock = kBlockBytes / sizeof(Segment);

OFFLOAD_HOST_DEVICE inline std::uint32_t big_endian(std::uint32_t value) {
  return swap_bytes(value);
}

struct LocalBuffer {
  std::uint64_t address;
  std::uint32_t length;  ///< bytes; 0: not there
  std::uint32_t lkey;
};

struct RemotePointer {
  std::uint64_t address;
  std::uint32_t rkey;
};

/// The condition of an entry of Opcode::wait. The queue continues when the masked difference
/// between the current value and `value` is in the lower half of the mask's range: so both may
/// wrap.
struct Awaited {
  static constexpr std::uint64_t kIndexMask = 0xff'ffffU;

  std::uint64_t value = 0;          ///< index of a completion, the first being 0; or a time
  std::uint64_t mask = kIndexMask;  ///< 2^n - 1
  std::uint32_t completions = 0;    ///< number of the completion queue
  bool is_time = false;             ///< by the card's clock, in the unit of its completions' times
};

/// One operation, as ibv_send_wr has it.
struct SendWork {
  Opcode opcode = Opcode::nop;
  std::uint8_t flags = 0;       ///< of SendFlag
  std::uint32_t immediate = 0;  ///< with_imm: as the peer gets it, in whatever byte order
  RemotePointer remote{};       ///< RDMA and atomics
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  const LocalBuffer* buffers = nullptr;
  std::uint32_t buffer_count = 0;
  const void* inline_data = nullptr;  ///< instead of buffers: writes and sends
  std::uint32_t inline_length = 0;    ///< bytes
  Awaited awaited{};                  ///< wait
};

OFFLOAD_HOST_DEVICE constexpr bool is_atomic(Opcode opcode) {
  return opcode == Opcode::compare_swap || opcode == Opcode::fetch_add;
}
OFFLOAD_HOST_DEVICE constexpr bool has_remote(Opcode opcode) {
  return opcode == Opcode::rdma_write || opcode == Opcode::rdma_write_with_imm ||
         opcode == Opcode::rdma_read || is_atomic(opcode);
}

/// Returns the number of segments of an entry for `work`, which may exceed kMostSegments.
OFFLOAD_HOST_DEVICE inline std::uint32_t segments_of(const SendWork& work) {
  constexpr std::uint32_t kInlineHeader = 4;
  constexpr std::uint32_t kSegment = sizeof(Segment);
  std::uint32_t segments = 1;
  if (work.opcode == Opcode::wait) return work.awaited.is_time ? 3 : 2;
  if (has_remote(work.opcode)) ++segments;
  if (is_atomic(work.opcode)) ++segments;
  if (work.inline_length != 0) {
    return segments + (kInlineHeader + work.inline_length + kSegment - 1) / kSegment;
  }
  for (std::uint32_t i = 0; i < work.buffer_count; ++i) segments += work.buffers[i].length != 0;
  return segments;
}

OFFLOAD_HOST_DEVICE constexpr std::uint32_t blocks_of(std::uint32_t segments) {
  return (segments + kSegmentsPerBlock - 1) / kSegmentsPerBlock;
}

/// Modifier of Opcode::wait: for a time (MLX5_OPC_MOD_WAIT_TIME).
inline constexpr std::uint32_t kWaitForTime = 2;
/// Condition of a wait for a time: the clock has reached the value (MLX5_WAIT_COND_CYCLIC_SMALLER).
inline constexpr std::uint32_t kCyclicSmaller = 5;

/// The first segment: what entry it is, whose, and how long. `position`: that of its block, counted
/// from the queue's first.
OFFLOAD_HOST_DEVICE inline Segment control_segment(std::uint64_t position, std::uint32_t queue,
                                                   std::uint32_t segments, const SendWork& work) {
  const auto index = static_cast<std::uint32_t>(position & 0xffffU);
  const bool for_time = work.opcode == Opcode::wait && work.awaited.is_time;
  const std::uint32_t modifier = for_time ? kWaitForTime << 24 : 0;
  return {{big_endian(modifier | index << 8 | static_cast<std::uint32_t>(work.opcode)),
           big_endian(queue << 8 | segments), big_endian(work.flags), work.immediate}};
}

OFFLOAD_HOST_DEVICE inline Segment remote_segment(const RemotePointer& remote) {
  return {{big_endian(static_cast<std::uint32_t>(remote.address >> 32)),
           big_endian(static_cast<std::uint32_t>(remote.address)), big_endian(remote.rkey), 0}};
}

/// Returns the segment of an atomic: 8 bytes to put or add, 8 to compare with.
OFFLOAD_HOST_DEVICE inline Segment atomic_segment(const SendWork& work) {
  const bool swaps = work.opcode == Opcode::compare_swap;
  const std::uint64_t operand = swaps ? work.swap : work.compare_add;
  const std::uint64_t compare = swaps ? work.compare_add : 0;
  return {{big_endian(static_cast<std::uint32_t>(operand >> 32)),
           big_endian(static_cast<std::uint32_t>(operand)),
           big_endian(static_cast<std::uint32_t>(compare >> 32)),
           big_endian(static_cast<std::uint32_t>(compare))}};
}

/// Returns segment `i` of the condition of an entry: a completion has one, a time has two.
OFFLOAD_HOST_DEVICE inline Segment wait_segment(const Awaited& awaited, std::uint32_t i) {
  const auto high = [](std::uint64_t value) {
    return big_endian(static_cast<std::uint32_t>(value >> 32));
  };
  const auto low = [](std::uint64_t value) {
    return big_endian(static_cast<std::uint32_t>(value));
  };
  if (!awaited.is_time) {
    return {{0, 0, low(awaited.value & Awaited::kIndexMask), big_endian(awaited.completions)}};
  }
  if (i == 0) return {{big_endian(kCyclicSmaller), 0, 0, 0}};
  return {{high(awaited.value), low(awaited.value), high(awaited.mask), low(awaited.mask)}};
}

/// Returns the segment of a local buffer, which is not empty.
OFFLOAD_HOST_DEVICE inline Segment data_segment(const LocalBuffer& buffer) {
  return {{big_endian(buffer.length), big_endian(buffer.lkey),
           big_endian(static_cast<std::uint32_t>(buffer.address >> 32)),
           big_endian(static_cast<std::uint32_t>(buffer.address))}};
}

/// Returns the segment of a receive's buffer. A card takes a length of 0 as 2^31, so a buffer that
/// is not there has the key that ends a list (MLX5_INVALID_LKEY).
OFFLOAD_HOST_DEVICE inline Segment receive_segment(const LocalBuffer& buffer) {
  constexpr std::uint32_t kNoBuffer = 0x100;
  return data_segment(buffer.length != 0 ? buffer : LocalBuffer{0, 0, kNoBuffer});
}

/// Returns segment `i` of inline data: the first one has its length, and all are padded with zeros.
OFFLOAD_HOST_DEVICE inline Segment inline_segment(const SendWork& work, std::uint32_t i) {
  constexpr std::uint32_t kInline = 0x8000'0000U;
  constexpr std::uint32_t kHeader = 4;
  Segment segment{};
  const std::uint32_t begin = i == 0 ? kHeader : 0;
  if (i == 0) segment.words[0] = big_endian(kInline | work.inline_length);
  const std::uint32_t skipped =
      i == 0 ? 0 : i * static_cast<std::uint32_t>(sizeof segment) - kHeader;
  const std::uint32_t room = static_cast<std::uint32_t>(sizeof segment) - begin;
  const std::uint32_t left = work.inline_length - skipped;
  std::memcpy(reinterpret_cast<std::uint8_t*>(&segment) + begin,
              static_cast<const std::uint8_t*>(work.inline_data) + skipped,
              left < room ? left : room);
  return segment;
}

/// Returns segment `i` of the entry that write_entry() writes, for lanes that write one each.
OFFLOAD_HOST_DEVICE inline Segment segment_at(std::uint64_t position, std::uint32_t queue,
                                              std::uint32_t segments, const SendWork& work,
                                              std::uint32_t i) {
  if (i == 0) return control_segment(position, queue, segments, work);
  if (work.opcode == Opcode::wait) return wait_segment(work.awaited, i - 1);
  std::uint32_t before = 1;
  if (has_remote(work.opcode)) {
    if (i == before++) return remote_segment(work.remote);
  }
  if (is_atomic(work.opcode)) {
    if (i == before++) return atomic_segment(work);
  }
  if (work.inline_length != 0) return inline_segment(work, i - before);
  std::uint32_t buffer = 0;
  while (work.buffers[buffer].length == 0 || before++ != i) ++buffer;
  return data_segment(work.buffers[buffer]);
}

/// The memory of a send queue: a power of two of blocks.
struct SendRing {
  Segment* segments;
  std::uint32_t blocks;

  /// Returns segment `i` of the entry whose block is at `position`.
  OFFLOAD_HOST_DEVICE Segment& at(std::uint64_t position, std::uint32_t i) const {
    const std::uint64_t segment = position * kSegmentsPerBlock + i;
    return segments[segment & (std::uint64_t{blocks} * kSegmentsPerBlock - 1)];
  }
};

/// Writes an entry for `work` of `segments` segments at `position`, and returns its control
/// segment. Precondition: there are as many free blocks, and at most kMostSegments. A card does not
/// read unpublished entries.
OFFLOAD_HOST_DEVICE inline Segment write_entry(const SendRing& ring, std::uint64_t position,
                                               std::uint32_t queue, std::uint32_t segments,
                                               const SendWork& work) {
  std::uint32_t next = 1;
  if (has_remote(work.opcode)) ring.at(position, next++) = remote_segment(work.remote);
  if (is_atomic(work.opcode)) ring.at(position, next++) = atomic_segment(work);
  if (work.opcode == Opcode::wait) {
    for (; next < segments; ++next) {
      ring.at(position, next) = wait_segment(work.awaited, next - 1);
    }
  } else if (work.inline_length != 0) {
    for (std::uint32_t i = 0; next < segments; ++i) {
      ring.at(position, next++) = inline_segment(work, i);
    }
  } else {
    for (std::uint32_t i = 0; i < work.buffer_count; ++i) {
      if (work.buffers[i].length != 0) ring.at(position, next++) = data_segment(work.buffers[i]);
    }
  }
  const Segment control = control_segment(position, queue, segments, work);
  ring.at(position, 0) = control;
  return control;
}

}  // namespace offload::kernels::rdma
