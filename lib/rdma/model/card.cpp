#include "rdma/model/card.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.hpp"

namespace offload::rdma::model {
namespace {

using kernels::rdma::big_endian;
using kernels::rdma::blocks_of;
using kernels::rdma::Completion;
using kernels::rdma::CompletionQueue;
using kernels::rdma::Cqe;
using kernels::rdma::CqeKind;
using kernels::rdma::has_remote;
using kernels::rdma::is_atomic;
using kernels::rdma::kCqeOwner;
using kernels::rdma::kFence;
using kernels::rdma::kSignaled;
using kernels::rdma::kSmallFence;
using kernels::rdma::kSolicited;
using kernels::rdma::LocalBuffer;
using kernels::rdma::make_cqe;
using kernels::rdma::Opcode;
using kernels::rdma::ReceiveQueue;
using kernels::rdma::Segment;
using kernels::rdma::SendQueue;
using kernels::rdma::SendRing;
using kernels::rdma::SendWork;

/// Keys begin here, so that a number of anything else is none.
constexpr std::uint32_t kFirstKey = 0x1000;
constexpr std::uint32_t kKeyStep = 0x100;
constexpr std::uint32_t kFirstNumber = 0x40;

std::uint64_t joined(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{big_endian(high)} << 32 | big_endian(low);
}

LocalBuffer buffer_of(const Segment& segment) {
  return {joined(segment.words[2], segment.words[3]), big_endian(segment.words[0]),
          big_endian(segment.words[1])};
}

bool sends(Opcode opcode) {
  return opcode == Opcode::send || opcode == Opcode::send_with_imm;
}

bool has_immediate(Opcode opcode) {
  return opcode == Opcode::send_with_imm || opcode == Opcode::rdma_write_with_imm;
}

bool is_known(std::uint32_t opcode) {
  constexpr Opcode kAll[] = {
      Opcode::nop,           Opcode::rdma_write, Opcode::rdma_write_with_imm, Opcode::send,
      Opcode::send_with_imm, Opcode::rdma_read,  Opcode::compare_swap,        Opcode::fetch_add};
  return std::any_of(std::begin(kAll), std::end(kAll),
                     [=](Opcode each) { return static_cast<std::uint32_t>(each) == opcode; });
}

/// With acquire: what the owner wrote before it is read after it. Pairs with store_record().
std::uint32_t load_record(const std::uint32_t* record) {
  return big_endian(__atomic_load_n(record, __ATOMIC_ACQUIRE));
}

}  // namespace

std::uint32_t Card::register_memory(std::span<std::byte> bytes, RemoteRights rights) {
  regions_.push_back({bytes, rights});
  return kFirstKey + kKeyStep * static_cast<std::uint32_t>(regions_.size() - 1);
}

std::uint32_t Card::add(const QueuePairMemory& memory) {
  constexpr std::uint32_t kMost = 1U << 15;  // as positions have 16 bits
  const std::uint32_t blocks = memory.send.ring.blocks;
  const std::uint32_t receives = memory.receive.entries;
  if (!std::has_single_bit(blocks) || blocks > kMost || !std::has_single_bit(receives) ||
      receives > kMost || blocks > 1U << memory.send.completions.log2 ||
      receives > 1U << memory.receive.completions.log2) {
    throw core::Error(core::ErrorCode::invalid_value, "a queue of an impossible size");
  }
  const auto number = kFirstNumber + static_cast<std::uint32_t>(pairs_.size());
  QueuePair& pair = pairs_.emplace_back();
  pair.memory = memory;
  pair.number = number;
  pair.sent.queue = memory.send.completions;
  pair.came.queue = memory.receive.completions;
  return number;
}

void Card::connect(std::uint32_t one, std::uint32_t other) {
  QueuePair& a = pairs_.at(one - kFirstNumber);
  QueuePair& b = pairs_.at(other - kFirstNumber);
  a.peer = &b;
  b.peer = &a;
}

bool Card::progress() {
  bool worked = false;
  for (QueuePair& pair : pairs_) {
    worked = look(pair) || worked;
    while (serve(pair)) worked = true;
  }
  return worked;
}

/// Takes over what the doorbell and the record say. The doorbell is read first, with acquire, so
/// the record is at least what it was when that was rung.
bool Card::look(QueuePair& pair) {
  const SendQueue& send = pair.memory.send;
  const std::uint64_t doorbell = __atomic_load_n(send.doorbell, __ATOMIC_ACQUIRE);
  if (doorbell == pair.doorbell) return false;
  pair.doorbell = doorbell;
  const auto published = static_cast<std::uint16_t>(load_record(send.record));
  const auto first = big_endian(static_cast<std::uint32_t>(doorbell));
  const auto second = big_endian(static_cast<std::uint32_t>(doorbell >> 32));
  if (second >> 8 != pair.number) {
    note_fault(pair, "the doorbell is another queue's");
    return true;
  }
  const auto rung = static_cast<std::uint16_t>(first >> 8 & 0xffffU);
  const auto entry_end = static_cast<std::uint16_t>(rung + blocks_of(second & 0x3fU));
  const auto more = static_cast<std::uint16_t>(published - pair.end);
  const auto until_rung = static_cast<std::uint16_t>(entry_end - pair.end);
  if (more > send.ring.blocks) {
    note_fault(pair, "the record is beyond the ring");
  } else if (until_rung > more) {
    note_fault(pair, "the doorbell was rung before the record was there");
  } else {
    pair.end += more;
  }
  return true;
}

/// Carries out the next entry. False: there is none, or it has to wait.
bool Card::serve(QueuePair& pair) {
  if (pair.next == pair.end) return false;
  Entry entry;
  if (!read_entry(pair, entry)) return false;
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(pair.next);
  completion.queue = pair.number;
  Syndrome syndrome = Syndrome::flushed;
  Result result = Result::failed;
  if (!pair.in_error) result = carry_out(pair, entry, syndrome, completion.byte_count);
  if (result == Result::waits) return false;
  pair.next += blocks_of(entry.segments);
  if (result == Result::failed) {
    pair.in_error = true;
    completion.kind = CqeKind::request_error;
    completion.syndrome = syndrome;
  }
  if (result == Result::failed || (entry.work.flags & kSignaled) != 0) {
    complete(pair.sent, completion);
  }
  return true;
}

/// Reads the entry at `next`, and is strict about it. False: it breaks the format.
bool Card::read_entry(QueuePair& pair, Entry& entry) {
  const SendRing& ring = pair.memory.send.ring;
  const Segment control = ring.at(pair.next, 0);
  const std::uint32_t what = big_endian(control.words[0]);
  const std::uint32_t whose = big_endian(control.words[1]);
  const std::uint32_t flags = big_endian(control.words[2]);
  const auto refuse = [&](const char* why) {
    note_fault(pair, "entry " + std::to_string(pair.next) + ": " + why);
    return false;
  };
  if ((what >> 8 & 0xffffU) != (pair.next & 0xffffU)) return refuse("its index is another's");
  if (what >> 24 != 0 || !is_known(what & 0xffU)) return refuse("an unknown operation");
  if (whose >> 8 != pair.number) return refuse("its queue is another");
  constexpr std::uint32_t kFlags = kSolicited | kSignaled | kSmallFence | kFence;
  if ((flags & ~kFlags) != 0) return refuse("a reserved field is not 0");

  entry.segments = whose & 0x3fU;
  SendWork& work = entry.work;
  work.opcode = static_cast<Opcode>(what & 0xffU);
  work.flags = static_cast<std::uint8_t>(flags);
  work.immediate = control.words[3];
  if (!has_immediate(work.opcode) && work.immediate != 0) {
    return refuse("an immediate without an operation that has one");
  }
  const std::uint32_t fixed =
      1 + (has_remote(work.opcode) ? 1U : 0U) + (is_atomic(work.opcode) ? 1U : 0U);
  if ((whose & 0xc0U) != 0 || entry.segments < fixed) return refuse("its length is none");
  if (pair.next + blocks_of(entry.segments) > pair.end) return refuse("it is not all published");

  std::uint32_t next = 1;
  if (has_remote(work.opcode)) {
    const Segment remote = ring.at(pair.next, next++);
    work.remote = {joined(remote.words[0], remote.words[1]), big_endian(remote.words[2])};
    if (remote.words[3] != 0) return refuse("a reserved field is not 0");
  }
  if (is_atomic(work.opcode)) {
    const Segment operands = ring.at(pair.next, next++);
    const std::uint64_t operand = joined(operands.words[0], operands.words[1]);
    const std::uint64_t compare = joined(operands.words[2], operands.words[3]);
    (work.opcode == Opcode::compare_swap ? work.swap : work.compare_add) = operand;
    if (work.opcode == Opcode::compare_swap) work.compare_add = compare;
  }
  constexpr std::uint32_t kInline = 0x8000'0000U;
  while (next < entry.segments) {
    const Segment segment = ring.at(pair.next, next++);
    const std::uint32_t length = big_endian(segment.words[0]);
    if ((length & kInline) == 0) {
      entry.buffers.push_back(buffer_of(segment));
      continue;
    }
    // All that follows is its bytes.
    const std::size_t size = length & ~kInline;
    const std::size_t room = (entry.segments - next + 1) * sizeof(Segment) - sizeof length;
    if (size > room || room - size >= sizeof(Segment) || !entry.buffers.empty() ||
        work.opcode == Opcode::rdma_read || is_atomic(work.opcode)) {
      return refuse("inline data that cannot be");
    }
    entry.inline_bytes.resize(room);
    std::memcpy(entry.inline_bytes.data(), &segment.words[1], sizeof segment - sizeof length);
    for (std::size_t at = sizeof segment - sizeof length; at < room; at += sizeof segment) {
      std::memcpy(entry.inline_bytes.data() + at, &ring.at(pair.next, next++), sizeof segment);
    }
    entry.inline_bytes.resize(size);
  }
  return true;
}

Card::Result Card::carry_out(QueuePair& pair, const Entry& entry, Syndrome& syndrome,
                             std::uint32_t& bytes) {
  const SendWork& work = entry.work;
  const auto failed = [&](Syndrome why) {
    syndrome = why;
    return Result::failed;
  };
  if (work.opcode == Opcode::nop) return Result::done;
  if (pair.peer == nullptr) return failed(Syndrome::transport_retries);
  if (pair.peer->in_error) return failed(Syndrome::transport_retries);

  const bool reads = work.opcode == Opcode::rdma_read || is_atomic(work.opcode);
  std::vector<std::byte> message;
  if (!reads) {
    if (const auto why = gather(entry, message); why != Syndrome::none) return failed(why);
  }
  if (sends(work.opcode)) return deliver(pair, entry, message, syndrome);

  std::uint64_t length = message.size();
  if (is_atomic(work.opcode)) length = sizeof(std::uint64_t);
  if (work.opcode == Opcode::rdma_read) {
    for (const LocalBuffer& buffer : entry.buffers) length += buffer.length;
  }
  const Region* const region = region_of(work.remote.rkey);
  const auto remote = find(work.remote.address, length, work.remote.rkey);
  const RemoteRights rights = region == nullptr ? RemoteRights{} : region->rights;
  const bool allowed = is_atomic(work.opcode)             ? rights.atomic
                       : work.opcode == Opcode::rdma_read ? rights.read
                                                          : rights.write;
  if (length != 0 && (remote.size() != length || !allowed)) return failed(Syndrome::remote_access);
  bytes = static_cast<std::uint32_t>(length);
  if (is_atomic(work.opcode)) {
    if (work.remote.address % sizeof(std::uint64_t) != 0) {
      return failed(Syndrome::remote_invalid_request);
    }
    auto* const word = reinterpret_cast<std::uint64_t*>(remote.data());
    std::uint64_t before = work.compare_add;
    // Sequentially consistent: the peer polls such words to see what was written before them.
    if (work.opcode == Opcode::fetch_add) {
      before = __atomic_fetch_add(word, work.compare_add, __ATOMIC_SEQ_CST);
    } else {
      __atomic_compare_exchange_n(word, &before, work.swap, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
    }
    message.resize(sizeof before);
    std::memcpy(message.data(), &before, sizeof before);
  } else if (work.opcode == Opcode::rdma_read) {
    message.assign(remote.begin(), remote.end());
  } else {
    std::copy(message.begin(), message.end(), remote.begin());
  }
  if (reads) {
    const Syndrome why = scatter(entry, message);
    return why == Syndrome::none ? Result::done : failed(why);
  }
  if (work.opcode == Opcode::rdma_write_with_imm) return deliver(pair, entry, message, syndrome);
  return Result::done;
}

/// Uses up the peer's oldest receive: for a message, or for an immediate.
Card::Result Card::deliver(QueuePair& pair, const Entry& entry, std::span<const std::byte> message,
                           Syndrome& syndrome) {
  QueuePair& peer = *pair.peer;
  const ReceiveQueue& queue = peer.memory.receive;
  const auto posted = static_cast<std::uint16_t>(load_record(queue.record));
  const auto there = static_cast<std::uint16_t>(posted - peer.received);
  if (there == 0 || there > queue.entries) {
    if (there == 0 && !fail_without_receive_) return Result::waits;
    if (there != 0) note_fault(peer, "the record of receives is beyond the ring");
    syndrome = Syndrome::receiver_not_ready;
    return Result::failed;
  }
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(peer.received);
  completion.queue = peer.number;
  completion.immediate = entry.work.immediate;
  completion.byte_count = static_cast<std::uint32_t>(message.size());
  completion.kind = CqeKind::received_write_with_imm;
  if (sends(entry.work.opcode)) {
    const LocalBuffer buffer = buffer_of(queue.ring[peer.received & (queue.entries - 1)]);
    const auto room = find(buffer.address, buffer.length, buffer.lkey);
    const bool fits = message.size() <= buffer.length;
    if (!message.empty() && (!fits || room.size() != buffer.length)) {
      completion.kind = CqeKind::receive_error;
      completion.syndrome = fits ? Syndrome::local_protection : Syndrome::local_length;
      syndrome = fits ? Syndrome::remote_operation : Syndrome::remote_invalid_request;
    } else {
      std::copy(message.begin(), message.end(), room.begin());
      completion.kind = entry.work.opcode == Opcode::send ? CqeKind::received_send
                                                          : CqeKind::received_send_with_imm;
    }
  }
  ++peer.received;
  complete(peer.came, completion);
  if (!completion.is_error()) return Result::done;
  peer.in_error = true;
  return Result::failed;
}

Card::Syndrome Card::gather(const Entry& entry, std::vector<std::byte>& message) const {
  message = entry.inline_bytes;
  for (const LocalBuffer& buffer : entry.buffers) {
    const auto bytes = find(buffer.address, buffer.length, buffer.lkey);
    if (bytes.size() != buffer.length) return Syndrome::local_protection;
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  return Syndrome::none;
}

Card::Syndrome Card::scatter(const Entry& entry, std::span<const std::byte> message) const {
  for (const LocalBuffer& buffer : entry.buffers) {
    const auto bytes = find(buffer.address, buffer.length, buffer.lkey);
    if (bytes.size() != buffer.length) return Syndrome::local_protection;
    const std::size_t size = std::min(bytes.size(), message.size());
    std::copy_n(message.begin(), size, bytes.begin());
    message = message.subspan(size);
  }
  return message.empty() ? Syndrome::none : Syndrome::local_length;
}

std::span<std::byte> Card::find(std::uint64_t address, std::uint64_t length,
                                std::uint32_t key) const {
  const Region* const region = region_of(key);
  if (region == nullptr) return {};
  const auto begin = reinterpret_cast<std::uint64_t>(region->bytes.data());
  if (address < begin || length > region->bytes.size() ||
      address - begin > region->bytes.size() - length) {
    return {};
  }
  return region->bytes.subspan(address - begin, length);
}

const Card::Region* Card::region_of(std::uint32_t key) const {
  const std::uint32_t index = (key - kFirstKey) / kKeyStep;
  if (key < kFirstKey || key % kKeyStep != 0 || index >= regions_.size()) return nullptr;
  return &regions_[index];
}

/// The owner's word last, with release: what the operation wrote, and the rest of the entry, is
/// there before. Pairs with load_owner().
void Card::complete(Completions& to, const Completion& completion) {
  const CompletionQueue& queue = to.queue;
  const Cqe cqe = make_cqe(completion, to.written, queue.log2);
  Cqe& place = queue.entries[to.written++ & ((std::uint64_t{1} << queue.log2) - 1)];
  std::copy_n(cqe.words, kCqeOwner, place.words);
  __atomic_store_n(&place.words[kCqeOwner], cqe.words[kCqeOwner], __ATOMIC_RELEASE);
}

void Card::note_fault(QueuePair& pair, const std::string& what) {
  if (fault_.empty()) fault_ = "queue " + std::to_string(pair.number) + ": " + what;
  pair.in_error = true;
  pair.next = pair.end;
}

}  // namespace offload::rdma::model
