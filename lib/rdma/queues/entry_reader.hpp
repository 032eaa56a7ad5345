#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/rdma/queue_pair.hpp"

/// Readers of queues, for an emulation of a card. The memory belongs to an untrusted owner, which
/// may change it at any time: each field is read once, and checked before it is used. A violation
/// of the format is a fault, which ends the reading and has a text for the owner.
///
/// Positions are counted from a queue's first, in 64 bits: blocks of a send queue, entries of a
/// receive queue. Only the text of a fault allocates. One thread.
namespace offload::rdma {

/// Reads memory of the card's own and drops it (MLX5_OPCODE_DUMP): so a GPU has what came before
/// written out.
inline constexpr auto kDump = kernels::rdma::Opcode::dump;

/// Bytes that an entry can have inline.
inline constexpr std::uint32_t kMostInline =
    (kernels::rdma::kMostSegments - 1) * sizeof(kernels::rdma::Segment) - 4;

/// The format of the entries of a send queue.
enum class EntryFormat : std::uint8_t {
  rdma,
  raw_packet,  ///< frames of Ethernet: kernels/rdma/ethernet.hpp
};

/// The strictness with which doorbells and entries are read.
enum class Reading : std::uint8_t {
  /// Like a card: a doorbell may be rung before its record is written, fields that a card ignores
  /// may have any value, and all its modes of completions and of fences are accepted. NVIDIA's
  /// device functions need this.
  as_card,
  /// As kernels/rdma writes them, each byte: tests find faults of our own writers by this.
  strict,
};

/// An entry as it was read.
struct Entry {
  std::uint64_t position;        ///< of its first block
  std::uint32_t segments;        ///< 1 to kMostSegments
  kernels::rdma::SendWork work;  ///< its buffers are those below, until the next is read
  kernels::rdma::LocalBuffer buffers[kernels::rdma::kMostSegments];
  /// For a raw packet: flags of kernels::rdma::ChecksumFlag. Its inline data is the begin of the
  /// frame, and the buffers have the rest.
  std::uint8_t checksums = 0;

  [[nodiscard]] std::uint64_t end() const { return position + kernels::rdma::blocks_of(segments); }
  [[nodiscard]] bool is_inline() const { return work.inline_data != nullptr; }
};

/// The reading side of a send queue.
class EntryReader {
 public:
  explicit EntryReader(const kernels::rdma::SendQueue& queue,
                       EntryFormat format = EntryFormat::rdma, Reading reading = Reading::as_card)
      : queue_(queue), format_(format), reading_(reading) {}

  /// Looks at the doorbell, and takes over what the record says if it was rung. Returns whether it
  /// was, or broke the format.
  bool look() noexcept;
  [[nodiscard]] bool has_entry() const noexcept { return next_ != end_; }
  /// Reads the next entry; its inline data, kMostInline bytes at most, is put at `inline_room`.
  /// Precondition: has_entry(). False: it breaks the format.
  bool read(Entry& entry, std::byte* inline_room) noexcept;
  /// Goes on behind an entry that was read.
  void pass(const Entry& entry) noexcept { next_ = entry.end(); }
  /// The blocks before `position` have been completed: the owner may write them again.
  void retire(std::uint64_t position) noexcept { retired_ = position; }

  /// Returns the position of the next entry, in blocks.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t retired() const noexcept { return retired_; }
  /// Returns the position behind the published blocks.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// After a fault nothing is read any more.
  [[nodiscard]] bool has_fault() const noexcept { return fault_ != nullptr; }
  /// "entry 7: its index is another's"; empty: none.
  [[nodiscard]] std::string fault() const;

 private:
  bool refuse(const char* why, bool of_entry = true) noexcept;
  [[nodiscard]] bool is_strict() const noexcept { return reading_ == Reading::strict; }
  [[nodiscard]] std::uint32_t blocks_ahead(std::uint16_t position,
                                           std::uint32_t most_behind) const noexcept;
  const char* read_control(Entry& entry) noexcept;
  const char* read_flags(std::uint32_t flags, kernels::rdma::SendWork& work) const noexcept;
  const char* read_operands(Entry& entry, std::byte* inline_room) noexcept;
  const char* read_awaited(kernels::rdma::Awaited& awaited) const noexcept;
  const char* read_ethernet(Entry& entry, std::byte* inline_room, std::uint32_t& next) noexcept;
  const char* read_inline(Entry& entry, std::uint32_t first, std::byte* room) noexcept;

  kernels::rdma::SendQueue queue_;
  EntryFormat format_;
  Reading reading_;
  std::uint64_t doorbell_ = 0;  ///< as last seen
  std::uint64_t end_ = 0;       ///< of the published blocks
  std::uint64_t next_ = 0;
  std::uint64_t retired_ = 0;
  const char* fault_ = nullptr;
  bool fault_of_entry_ = false;
};

/// The reading side of a receive queue.
class ReceiveReader {
 public:
  explicit ReceiveReader(const kernels::rdma::ReceiveQueue& queue) : queue_(queue) {}

  /// Reads the record. Returns the number of receives to read, 0 after a fault.
  std::uint32_t look() noexcept;
  /// Reads the next one. Precondition: there is one.
  kernels::rdma::LocalBuffer read() noexcept;
  /// `count` more have been completed, the oldest first.
  void retire(std::uint64_t count) noexcept { retired_ += count; }

  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t retired() const noexcept { return retired_; }
  /// "the record of receives is beyond the ring"; empty: none.
  [[nodiscard]] std::string fault() const { return has_fault_ ? kFault : ""; }
  [[nodiscard]] bool has_fault() const noexcept { return has_fault_; }

 private:
  static constexpr const char* kFault = "the record of receives is beyond the ring";

  kernels::rdma::ReceiveQueue queue_;
  std::uint64_t end_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t retired_ = 0;
  bool has_fault_ = false;
};

/// Returns whether it is a send, which uses up a receive for its bytes.
constexpr bool is_send(kernels::rdma::Opcode opcode) {
  return opcode == kernels::rdma::Opcode::send || opcode == kernels::rdma::Opcode::send_with_imm;
}

}  // namespace offload::rdma
