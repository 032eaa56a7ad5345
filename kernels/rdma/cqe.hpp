#pragma once

#include <cstdint>

#include "kernels/rdma/wqe.hpp"

/// Completion queue entries in the format of mlx5 cards, of 64 bytes (struct mlx5_cqe64 of
/// infiniband/mlx5dv.h): read here, and written by an emulation of a card.
namespace offload::kernels::rdma {

/// The kind of an entry (MLX5_CQE_*).
enum class CqeKind : std::uint8_t {
  request = 0,  ///< an entry of the send queue is done
  received_write_with_imm = 1,
  received_send = 2,
  received_send_with_imm = 3,
  request_error = 13,
  receive_error = 14,
  invalid = 15,  ///< not written yet
};

/// Why an entry failed (MLX5_CQE_SYNDROME_*).
enum class Syndrome : std::uint8_t {
  none = 0,
  local_length = 0x01,
  local_queue_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,  ///< the queue was in error before it
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  transport_retries = 0x15,
  receiver_not_ready = 0x16,
  remote_aborted = 0x22,
};

/// The last byte of an unwritten entry. Its owner is that of the second lap, so that a reader that
/// checks only the owner, like NVIDIA's device functions, does not take it for one of the first
/// lap.
inline constexpr std::uint32_t kFreshOwner = static_cast<std::uint32_t>(CqeKind::invalid) << 4 | 1U;

/// An entry of a completion queue, as it lies in memory.
struct alignas(64) Cqe {
  std::uint32_t words[16];
};

/// The indices of its fields, in words. For a raw packet: u8 checksums that are right, u8 kinds of
/// headers, u16 VLAN tag.
inline constexpr std::uint32_t kCqeEthernet = 7;
/// The number of the shared receive queue that the receive is of, in the lower 24 bits; 0: none.
inline constexpr std::uint32_t kCqeShared = 8;
inline constexpr std::uint32_t kCqeImmediate = 9;
inline constexpr std::uint32_t kCqeByteCount = 11;
/// u64, by the card's clock; not of an error.
inline constexpr std::uint32_t kCqeTime = 12;
/// For an error: byte 2 has the vendor's syndrome, byte 3 the syndrome.
inline constexpr std::uint32_t kCqeSyndrome = 13;
/// Byte 0 has the opcode of the entry, the rest the queue's number.
inline constexpr std::uint32_t kCqeQueue = 14;
/// u16 counter of the entry's block, u8 signature, u8 kind in the upper half and owner in bit 0.
/// Written last: the rest is valid when this is.
inline constexpr std::uint32_t kCqeOwner = 15;

/// A completion.
struct Completion {
  CqeKind kind;
  Syndrome syndrome;              ///< of an error
  std::uint8_t vendor;            ///< the card's own number for it
  Opcode opcode;                  ///< of a request that is done
  std::uint16_t counter;          ///< of the entry's first block, or of the receive
  std::uint32_t queue;            ///< its number
  std::uint32_t byte_count;       ///< received, or read
  std::uint32_t immediate;        ///< as the peer gave it
  std::uint32_t ethernet;         ///< of a raw packet: kernels/rdma/ethernet.hpp
  std::uint64_t time;             ///< by the card's clock, in its unit
  std::uint32_t shared_receives;  ///< 0, or their number: written for a reader of libmlx5

  [[nodiscard]] OFFLOAD_HOST_DEVICE bool is_error() const {
    return kind == CqeKind::request_error || kind == CqeKind::receive_error;
  }
};

/// Returns the owner bit of entry `index`, counted from the queue's first, in a ring of 2^`log2`
/// entries: it changes with each lap, to distinguish entries of the previous lap.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t owner_of(std::uint64_t index, std::uint32_t log2) {
  return static_cast<std::uint32_t>(index >> log2) & 1U;
}

/// Returns whether the last word of an entry says that it is that of entry `index`.
OFFLOAD_HOST_DEVICE inline bool is_there(std::uint32_t owner_word, std::uint64_t index,
                                         std::uint32_t log2) {
  const std::uint32_t word = big_endian(owner_word);
  const auto kind = static_cast<CqeKind>(word >> 4 & 0xfU);
  return kind != CqeKind::invalid && (word & 1U) == owner_of(index, log2);
}

/// Reads the last words of a valid entry: all fields except bytes and immediate.
OFFLOAD_HOST_DEVICE inline Completion read_last_words(std::uint32_t syndrome, std::uint32_t queue,
                                                      std::uint32_t owner) {
  const std::uint32_t last = big_endian(owner);
  const std::uint32_t of = big_endian(queue);
  Completion completion{};
  completion.kind = static_cast<CqeKind>(last >> 4 & 0xfU);
  completion.counter = static_cast<std::uint16_t>(last >> 16);
  completion.queue = of & 0xff'ffffU;
  if (completion.kind == CqeKind::request) completion.opcode = static_cast<Opcode>(of >> 24);
  if (completion.is_error()) {
    const std::uint32_t reason = big_endian(syndrome);
    completion.syndrome = static_cast<Syndrome>(reason & 0xffU);
    completion.vendor = static_cast<std::uint8_t>(reason >> 8 & 0xffU);
  }
  return completion;
}

/// The completion of an entry that is there.
OFFLOAD_HOST_DEVICE inline Completion read_cqe(const Cqe& cqe) {
  Completion completion =
      read_last_words(cqe.words[kCqeSyndrome], cqe.words[kCqeQueue], cqe.words[kCqeOwner]);
  if (completion.is_error()) return completion;
  completion.byte_count = big_endian(cqe.words[kCqeByteCount]);
  completion.immediate = cqe.words[kCqeImmediate];
  completion.ethernet = big_endian(cqe.words[kCqeEthernet]);
  completion.time =
      std::uint64_t{big_endian(cqe.words[kCqeTime])} << 32 | big_endian(cqe.words[kCqeTime + 1]);
  return completion;
}

/// Makes the entry for a completion at `index`, for an emulation of a card. Its last word must be
/// stored last, with release.
OFFLOAD_HOST_DEVICE inline Cqe make_cqe(const Completion& completion, std::uint64_t index,
                                        std::uint32_t log2) {
  Cqe cqe{};
  cqe.words[kCqeShared] = big_endian(completion.shared_receives);
  if (completion.is_error()) {
    cqe.words[kCqeSyndrome] = big_endian(static_cast<std::uint32_t>(completion.vendor) << 8 |
                                         static_cast<std::uint32_t>(completion.syndrome));
  } else {
    cqe.words[kCqeByteCount] = big_endian(completion.byte_count);
    cqe.words[kCqeImmediate] = completion.immediate;
    cqe.words[kCqeEthernet] = big_endian(completion.ethernet);
    cqe.words[kCqeTime] = big_endian(static_cast<std::uint32_t>(completion.time >> 32));
    cqe.words[kCqeTime + 1] = big_endian(static_cast<std::uint32_t>(completion.time));
  }
  const std::uint32_t opcode =
      completion.kind == CqeKind::request ? static_cast<std::uint32_t>(completion.opcode) : 0;
  cqe.words[kCqeQueue] = big_endian(opcode << 24 | completion.queue);
  cqe.words[kCqeOwner] =
      big_endian(static_cast<std::uint32_t>(completion.counter) << 16 |
                 static_cast<std::uint32_t>(completion.kind) << 4 | owner_of(index, log2));
  return cqe;
}

}  // namespace offload::kernels::rdma
