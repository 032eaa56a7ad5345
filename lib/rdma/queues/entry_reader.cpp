#include "rdma/queues/entry_reader.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/rdma/ethernet.hpp"

namespace offload::rdma {
namespace {

using kernels::rdma::big_endian;
using kernels::rdma::blocks_of;
using kernels::rdma::has_remote;
using kernels::rdma::is_atomic;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Opcode;
using kernels::rdma::Segment;
using kernels::rdma::SendWork;

/// The flag of a segment of local memory whose bytes follow.
constexpr std::uint32_t kInline = 0x8000'0000U;

constexpr std::uint64_t mask_of(Opcode opcode) {
  return std::uint64_t{1} << static_cast<unsigned>(opcode);
}

constexpr std::uint64_t kKnown = mask_of(Opcode::nop) | mask_of(Opcode::rdma_write) |
                                 mask_of(Opcode::rdma_write_with_imm) | mask_of(Opcode::send) |
                                 mask_of(Opcode::send_with_imm) | mask_of(Opcode::rdma_read) |
                                 mask_of(Opcode::compare_swap) | mask_of(Opcode::fetch_add) |
                                 mask_of(Opcode::wait) | mask_of(kDump);

bool is_known(std::uint32_t opcode) {
  return opcode < 64 && (kKnown >> opcode & 1U) != 0;
}

/// A position that a queue cannot have.
constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
constexpr std::uint32_t kHalfOfPositions = 1U << 15;

/// Returns whether a queue for raw packets has the operation; a card has others, too, which nothing
/// here writes.
bool is_of_raw_packet(std::uint32_t opcode) {
  constexpr std::uint64_t kOfRawPacket =
      mask_of(Opcode::nop) | mask_of(Opcode::send) | mask_of(Opcode::wait);
  return opcode < 64 && (kOfRawPacket >> opcode & 1U) != 0;
}

bool has_immediate(Opcode opcode) {
  return opcode == Opcode::send_with_imm || opcode == Opcode::rdma_write_with_imm;
}

std::uint64_t joined(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{big_endian(high)} << 32 | big_endian(low);
}

/// Each word is read once, so that what was checked is what is used.
Segment load(const Segment& segment) {
  const std::uint32_t* const words = segment.words;
  return {
      {__atomic_load_n(&words[0], __ATOMIC_RELAXED), __atomic_load_n(&words[1], __ATOMIC_RELAXED),
       __atomic_load_n(&words[2], __ATOMIC_RELAXED), __atomic_load_n(&words[3], __ATOMIC_RELAXED)}};
}

LocalBuffer buffer_of(const Segment& segment) {
  return {joined(segment.words[2], segment.words[3]), big_endian(segment.words[0]),
          big_endian(segment.words[1])};
}

/// With acquire: what the owner wrote before it is read after it. Pairs with store_record().
std::uint16_t load_record(const std::uint32_t* record) {
  return static_cast<std::uint16_t>(big_endian(__atomic_load_n(record, __ATOMIC_ACQUIRE)));
}

}  // namespace

bool EntryReader::refuse(const char* why, bool of_entry) noexcept {
  fault_ = why;
  fault_of_entry_ = of_entry;
  end_ = next_;
  return false;
}

std::string EntryReader::fault() const {
  if (fault_ == nullptr) return {};
  return fault_of_entry_ ? "entry " + std::to_string(next_) + ": " + fault_ : fault_;
}

bool EntryReader::look() noexcept {
  // With acquire: the record is at least what it was when this was rung. Pairs with
  // ring_doorbell().
  const std::uint64_t doorbell = __atomic_load_n(queue_.doorbell, __ATOMIC_ACQUIRE);
  if (doorbell == doorbell_ || has_fault()) return false;
  doorbell_ = doorbell;
  const std::uint32_t what = big_endian(static_cast<std::uint32_t>(doorbell));
  const std::uint32_t whose = big_endian(static_cast<std::uint32_t>(doorbell >> 32));
  if (whose >> 8 != queue_.number) return refuse("the doorbell names another queue", false), true;

  const auto rung_end = static_cast<std::uint16_t>((what >> 8) + blocks_of(whose & 0x3fU));
  const std::uint16_t published = queue_.has_record ? load_record(queue_.record) : rung_end;
  // A doorbell that was on its way when the record was last read is of blocks that were under way
  // then. A record is behind only where it is written after the doorbell. Without a record, owners
  // that share a queue may ring late by any number of blocks.
  const bool is_late_by_any = !is_strict() && !queue_.has_record;
  const std::uint32_t late = is_late_by_any ? kHalfOfPositions : queue_.ring.blocks;
  const std::uint32_t rung = blocks_ahead(rung_end, late);
  const std::uint32_t more = blocks_ahead(published, is_strict() ? 0 : late);
  if (more == kNowhere) {
    const char* const beyond = "the doorbell is beyond the ring";
    return refuse(queue_.has_record ? "the record is beyond the ring" : beyond, false), true;
  }
  // The owner may have gone on since: the record is as far as the entry that was rung for, or
  // farther.
  if (is_strict() && rung > more) {
    return refuse("the doorbell was rung before the record was written", false), true;
  }
  if (rung == kNowhere) return refuse("the doorbell is beyond the ring", false), true;
  end_ += std::max(rung, more);
  return true;
}

/// Returns how many blocks `position` is ahead of the known published end: 0 if it is at most
/// `most_behind` blocks behind that, kNowhere if a queue cannot have such a position.
std::uint32_t EntryReader::blocks_ahead(std::uint16_t position,
                                        std::uint32_t most_behind) const noexcept {
  const auto ahead = static_cast<std::uint16_t>(position - end_);
  if (end_ - retired_ + ahead <= queue_.ring.blocks) return ahead;
  return static_cast<std::uint16_t>(end_ - position) <= most_behind ? 0 : kNowhere;
}

bool EntryReader::read(Entry& entry, std::byte* inline_room) noexcept {
  entry.position = next_;
  entry.work = {};
  entry.checksums = 0;
  entry.work.buffers = entry.buffers;
  const char* why = read_control(entry);
  if (why == nullptr) why = read_operands(entry, inline_room);
  return why == nullptr || refuse(why);
}

/// Returns the error of an entry, or null.
const char* EntryReader::read_control(Entry& entry) noexcept {
  const Segment control = load(queue_.ring.at(next_, 0));
  const std::uint32_t what = big_endian(control.words[0]);
  const std::uint32_t whose = big_endian(control.words[1]);
  const std::uint32_t flags = big_endian(control.words[2]);
  if ((what >> 8 & 0xffffU) != (next_ & 0xffffU)) return "its index is wrong";
  const bool known =
      format_ == EntryFormat::rdma ? is_known(what & 0xffU) : is_of_raw_packet(what & 0xffU);
  if (!known) return "its operation is unknown";
  SendWork& work = entry.work;
  work.opcode = static_cast<Opcode>(what & 0xffU);
  const bool waits = work.opcode == Opcode::wait;
  work.awaited.is_time = waits && what >> 24 == kernels::rdma::kWaitForTime;
  if (what >> 24 != 0 && !work.awaited.is_time) return "its operation is unknown";
  if (whose >> 8 != queue_.number) return "it names another queue";
  if (const char* const why = read_flags(flags, work)) return why;
  if (has_immediate(work.opcode)) {
    work.immediate = control.words[3];
  } else if (is_strict() && control.words[3] != 0) {
    return "its operation has no immediate";
  }
  entry.segments = whose & 0x3fU;
  std::uint32_t fixed =
      1 + (has_remote(work.opcode) ? 1U : 0U) + (is_atomic(work.opcode) ? 1U : 0U);
  if (waits) fixed = segments_of(work);
  if ((whose & 0xc0U) != 0 || entry.segments < fixed || (waits && entry.segments != fixed)) {
    return "its length is invalid";
  }
  if (entry.end() > end_) return "it is not completely published";
  return nullptr;
}

/// Reads the control segment's third word. Its last byte has, from bit 7 on, three bits for the
/// mode of the fence, one that is unused, two for the mode of the completion, and two flags. The
/// other bytes are a signature, and the stream of a kind of queue pair that is not here.
const char* EntryReader::read_flags(std::uint32_t flags, SendWork& work) const noexcept {
  using namespace kernels::rdma;  // the flags
  constexpr std::uint32_t kWritten = kSolicited | kSignaled | kSmallFence | kFence;
  constexpr std::uint32_t kUnused = 1U << 4 | 1U;
  constexpr std::uint32_t kMostFence = 4;
  const std::uint32_t fence = flags >> 5 & 7U;
  if ((flags & (is_strict() ? ~kWritten : kUnused)) != 0 || fence > kMostFence) {
    return "a reserved field is not 0";
  }
  // Completions: 0 and 1 of errors, 2 of each, 3 of each with an event. Fences: 1 waits for reads
  // and atomics; 2, 3 and 4 for more, as kFence does.
  const std::uint8_t fences[] = {0, kSmallFence, kFence, kFence, kFence};
  work.flags = static_cast<std::uint8_t>((flags & (kSolicited | kSignaled)) | fences[fence]);
  return nullptr;
}

const char* EntryReader::read_operands(Entry& entry, std::byte* inline_room) noexcept {
  const auto& ring = queue_.ring;
  SendWork& work = entry.work;
  std::uint32_t next = 1;
  if (has_remote(work.opcode)) {
    const Segment remote = load(ring.at(next_, next++));
    work.remote = {joined(remote.words[0], remote.words[1]), big_endian(remote.words[2])};
    if (is_strict() && remote.words[3] != 0) return "a reserved field is not 0";
  }
  if (work.opcode == Opcode::wait) return read_awaited(work.awaited);
  if (format_ == EntryFormat::raw_packet && work.opcode == Opcode::send) {
    if (const char* const why = read_ethernet(entry, inline_room, next)) return why;
  }
  if (is_atomic(work.opcode)) {
    const Segment operands = load(ring.at(next_, next++));
    const std::uint64_t operand = joined(operands.words[0], operands.words[1]);
    const std::uint64_t compare = joined(operands.words[2], operands.words[3]);
    (work.opcode == Opcode::compare_swap ? work.swap : work.compare_add) = operand;
    if (work.opcode == Opcode::compare_swap) work.compare_add = compare;
  }
  for (; next < entry.segments; ++next) {
    const LocalBuffer buffer = buffer_of(load(ring.at(next_, next)));
    if ((buffer.length & kInline) != 0) {
      if (format_ == EntryFormat::raw_packet) return "its inline data is invalid";
      if (work.buffer_count != 0) return "its inline data is invalid";
      work.inline_length = buffer.length & ~kInline;
      return read_inline(entry, next, inline_room);
    }
    // A card takes it for 2^31 bytes.
    if (buffer.length == 0) return "a buffer has length 0";
    entry.buffers[work.buffer_count++] = buffer;
  }
  return nullptr;
}

/// Reads what an entry waits for. The entry has the segments for it.
const char* EntryReader::read_awaited(kernels::rdma::Awaited& awaited) const noexcept {
  const Segment first = load(queue_.ring.at(next_, 1));
  if (!awaited.is_time) {
    if (is_strict() && (first.words[0] != 0 || first.words[1] != 0)) {
      return "a reserved field is not 0";
    }
    awaited.value = big_endian(first.words[2]);
    awaited.completions = big_endian(first.words[3]);
    return nullptr;
  }
  const Segment second = load(queue_.ring.at(next_, 2));
  awaited.value = joined(second.words[0], second.words[1]);
  awaited.mask = joined(second.words[2], second.words[3]);
  if (big_endian(first.words[0]) != kernels::rdma::kCyclicSmaller || awaited.mask == 0 ||
      (awaited.mask & (awaited.mask + 1)) != 0) {
    return "its condition is unknown";
  }
  const bool has_more = (first.words[1] | first.words[2] | first.words[3]) != 0;
  return is_strict() && has_more ? "a reserved field is not 0" : nullptr;
}

/// The Ethernet segment, at `next`, and the begin of the frame that it has inline.
const char* EntryReader::read_ethernet(Entry& entry, std::byte* room,
                                       std::uint32_t& next) noexcept {
  using kernels::rdma::kInlineInFirst;
  if (next == entry.segments) return "it has no Ethernet segment";
  const Segment first = load(queue_.ring.at(next_, next++));
  const std::uint32_t flags = big_endian(first.words[1]);
  constexpr std::uint32_t kChecksums =
      kernels::rdma::kIpChecksum | kernels::rdma::kTransportChecksum;
  // Without segmentation by the card, whose entries have another operation.
  if (first.words[0] != 0 || first.words[2] != 0 || (flags & ~(kChecksums << 24)) != 0) {
    return "a reserved field is not 0";
  }
  entry.checksums = static_cast<std::uint8_t>(flags >> 24);
  const std::uint32_t length = big_endian(first.words[3]) >> 16;
  const std::uint32_t begin = big_endian(first.words[3]) & 0xffffU;
  entry.work.inline_data = room;
  entry.work.inline_length = length;
  const std::size_t most = kInlineInFirst + (entry.segments - next) * sizeof(Segment);
  if (length > most) return "its inline header is longer than the entry";
  for (std::uint32_t i = 0; i < kInlineInFirst && i < length; ++i) {
    room[i] = static_cast<std::byte>(begin >> (8 * (kInlineInFirst - 1 - i)));
  }
  for (std::size_t at = kInlineInFirst; at < length; at += sizeof(Segment)) {
    const Segment more = load(queue_.ring.at(next_, next++));
    std::memcpy(room + at, &more, length - at < sizeof more ? length - at : sizeof more);
  }
  return nullptr;
}

/// Reads the inline data of segment `first` on, after the word of its length. Returns its error.
const char* EntryReader::read_inline(Entry& entry, std::uint32_t first, std::byte* room) noexcept {
  const SendWork& work = entry.work;
  const std::size_t most = (entry.segments - first) * sizeof(Segment) - sizeof(std::uint32_t);
  if (work.inline_length > most || most - work.inline_length >= sizeof(Segment) ||
      work.opcode == Opcode::rdma_read || is_atomic(work.opcode) || work.opcode == kDump) {
    return "its inline data is invalid";
  }
  entry.work.inline_data = room;
  std::size_t left = work.inline_length;
  std::size_t skipped = sizeof(std::uint32_t);
  for (std::uint32_t i = first; left != 0; ++i, skipped = 0) {
    const Segment segment = queue_.ring.at(next_, i);
    const std::size_t size = left < sizeof segment - skipped ? left : sizeof segment - skipped;
    std::memcpy(room, reinterpret_cast<const std::byte*>(&segment) + skipped, size);
    room += size;
    left -= size;
  }
  return nullptr;
}

std::uint32_t ReceiveReader::look() noexcept {
  if (has_fault_) return 0;
  end_ += static_cast<std::uint16_t>(load_record(queue_.record) - end_);
  if (end_ - retired_ > queue_.entries) {
    has_fault_ = true;
    return 0;
  }
  return static_cast<std::uint32_t>(end_ - next_);
}

LocalBuffer ReceiveReader::read() noexcept {
  return buffer_of(load(queue_.ring[next_++ & (queue_.entries - 1)]));
}

}  // namespace offload::rdma
