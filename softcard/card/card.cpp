#include "softcard/card/card.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/rdma/wait.hpp"

namespace offload::rdma::model {
namespace {

using kernels::rdma::Awaited;
using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::is_atomic;
using kernels::rdma::kSignaled;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Opcode;
using kernels::rdma::SendQueue;
using kernels::rdma::SendWork;

/// Keys start here, so that no other kind of number is a valid key.
constexpr std::uint32_t kFirstKey = 0x1000;
constexpr std::uint32_t kKeyStep = 0x100;
constexpr std::uint32_t kFirstNumber = 0x40;

std::span<const LocalBuffer> buffers_of(const Entry& entry) {
  return {entry.buffers, entry.work.buffer_count};
}

}  // namespace

std::uint32_t Card::register_memory(std::span<std::byte> bytes, RemoteRights rights) {
  regions_.push_back({bytes, rights});
  return kFirstKey + kKeyStep * static_cast<std::uint32_t>(regions_.size() - 1);
}

std::uint32_t Card::add(const QueuePairMemory& memory) {
  return add(memory, EntryFormat::rdma);
}

std::uint32_t Card::add_raw(const QueuePairMemory& memory, std::uint32_t least_inline) {
  const std::uint32_t number = add(memory, EntryFormat::raw_packet);
  pairs_.back().is_raw = true;
  pairs_.back().least_inline = least_inline;
  return number;
}

std::uint32_t Card::add(const QueuePairMemory& memory, EntryFormat format) {
  check_sizes(memory);
  const auto number = kFirstNumber + static_cast<std::uint32_t>(pairs_.size());
  SendQueue send = memory.send;
  send.number = number;
  pairs_.push_back({number, EntryReader(send, format, reading_), ReceiveReader(memory.receive),
                    CompletionWriter(send.completions),
                    CompletionWriter(memory.receive.completions)});
  return number;
}

void Card::connect(std::uint32_t one, std::uint32_t other) {
  QueuePair& a = pairs_.at(one - kFirstNumber);
  QueuePair& b = pairs_.at(other - kFirstNumber);
  a.peer = &b;
  b.peer = &a;
}

bool Card::progress() {
  if (rude_) return progress_rudely();
  bool worked = false;
  for (QueuePair& pair : pairs_) {
    worked = pair.entries.look() || worked;
    worked = place_one(pair) || worked;
    while (serve(pair)) worked = true;
    note_fault(pair);
  }
  return worked;
}

/// Returns whether a write came into memory. After the last, reports the operations that waited.
bool Card::place_one(QueuePair& pair) {
  if (pair.unplaced.empty()) return false;
  std::swap(pair.unplaced[(*unordered_)() % pair.unplaced.size()], pair.unplaced.back());
  copy(pair.unplaced.back().bytes, pair.unplaced.back().to);
  pair.unplaced.pop_back();
  if (!pair.unplaced.empty()) return true;
  for (; !pair.late_sent.empty(); pair.late_sent.pop_front())
    pair.sent.write(pair.late_sent.front());
  return true;
}

bool Card::progress_rudely() {
  auto& random = *rude_;
  bool worked = false;
  const auto release = [&](std::deque<Completion>& late, CompletionWriter& to) {
    worked = worked || !late.empty();
    for (; !late.empty() && random() % 2 == 0; late.pop_front()) to.write(late.front());
  };
  const std::size_t first = random() % std::max<std::size_t>(pairs_.size(), 1);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    QueuePair& pair = pairs_[(first + i) % pairs_.size()];
    if (random() % 4 != 0) worked = pair.entries.look() || worked;
    for (auto left = random() % 4; left != 0 && serve(pair); --left) worked = true;
    worked = worked || pair.entries.has_entry();
    note_fault(pair);
    release(pair.late_sent, pair.sent);
    release(pair.late_came, pair.came);
  }
  return worked;
}

void Card::complete_sent(QueuePair& pair, const Completion& completion) {
  if (rude_ || !pair.unplaced.empty()) {
    pair.late_sent.push_back(completion);
  } else {
    pair.sent.write(completion);
  }
}

void Card::complete_came(QueuePair& pair, const Completion& completion) {
  if (rude_) {
    pair.late_came.push_back(completion);
  } else {
    pair.came.write(completion);
  }
}

/// A card that is not rude stores a word at once, and the last byte of anything else after the
/// rest: a thread that polls memory for them relies on that. The release pairs with the acquire of
/// the polling thread.
void Card::copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (rude_) return copy_rudely(from, to);
  if (from.empty()) return;
  std::uint64_t word = 0;
  if (from.size() == sizeof word && std::bit_cast<std::uintptr_t>(to.data()) % sizeof word == 0) {
    std::memcpy(&word, from.data(), sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to.data()), word, __ATOMIC_RELEASE);
    return;
  }
  std::copy_n(from.begin(), from.size() - 1, to.begin());
  __atomic_store_n(reinterpret_cast<std::uint8_t*>(&to[from.size() - 1]),
                   std::to_integer<std::uint8_t>(from.back()), __ATOMIC_RELEASE);
}

void Card::copy_rudely(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr std::size_t kPiece = 64;
  std::size_t left = from.size();
  for (; left > kPiece; left -= kPiece) {
    std::copy_n(&from[left - kPiece], kPiece, &to[left - kPiece]);
  }
  std::copy_n(from.begin(), left, to.begin());
}

/// Carries out the next entry. Returns false if there is none, or it must wait.
bool Card::serve(QueuePair& pair) {
  if (!pair.entries.has_entry()) return false;
  Entry entry;
  std::array<std::byte, kMostInline> inline_bytes;
  if (!pair.entries.read(entry, inline_bytes.data())) return false;
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(entry.position);
  completion.queue = pair.number;
  completion.opcode = entry.work.opcode;
  Syndrome syndrome = Syndrome::flushed;
  Result result = Result::failed;
  if (!pair.in_error) result = carry_out(pair, entry, syndrome, completion.byte_count);
  if (result == Result::waits) return false;
  pair.is_placing = false;
  pair.entries.pass(entry);
  pair.entries.retire(entry.end());
  if (result == Result::failed) {
    pair.in_error = true;
    completion.kind = CqeKind::request_error;
    completion.syndrome = syndrome;
  }
  if (result == Result::failed || (entry.work.flags & kSignaled) != 0) {
    complete_sent(pair, completion);
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
  if (work.opcode == kDump) {
    const Syndrome why = gather(entry, message_);
    return why == Syndrome::none ? Result::done : failed(why);
  }
  if (work.opcode == Opcode::wait) return await(work.awaited, syndrome);
  if (pair.is_raw) return send_frame(pair, entry, syndrome);
  if (pair.peer == nullptr) return failed(Syndrome::transport_retries);
  if (pair.peer->in_error) return failed(Syndrome::transport_retries);

  const bool writes =
      work.opcode == Opcode::rdma_write || work.opcode == Opcode::rdma_write_with_imm;
  if (!writes && !pair.unplaced.empty()) return Result::waits;
  const bool reads = work.opcode == Opcode::rdma_read || is_atomic(work.opcode);
  std::vector<std::byte>& message = message_;
  message.clear();
  if (!reads) {
    if (const auto why = gather(entry, message); why != Syndrome::none) return failed(why);
  }
  if (is_send(work.opcode)) return deliver(pair, entry, message, syndrome);

  std::uint64_t length = message.size();
  if (is_atomic(work.opcode)) length = sizeof(std::uint64_t);
  if (work.opcode == Opcode::rdma_read) {
    for (const LocalBuffer& buffer : buffers_of(entry)) length += buffer.length;
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
  } else if (!unordered_) {
    copy(message, remote);
  } else if (!std::exchange(pair.is_placing, true)) {
    pair.unplaced.push_back({message, remote});
  }
  if (reads) {
    const Syndrome why = scatter(entry, message);
    return why == Syndrome::none ? Result::done : failed(why);
  }
  if (work.opcode != Opcode::rdma_write_with_imm) return Result::done;
  if (!pair.unplaced.empty()) return Result::waits;
  return deliver(pair, entry, message, syndrome);
}

/// Checks whether the clock, or the other completion queue, has reached the awaited value.
Card::Result Card::await(const Awaited& awaited, Syndrome& syndrome) const {
  std::uint64_t newest = kernels::rdma::now_ns();
  if (!awaited.is_time) {
    const std::uint32_t index = awaited.completions / 2 - kFirstNumber;
    if (index >= pairs_.size()) {
      syndrome = Syndrome::local_queue_operation;
      return Result::failed;
    }
    const QueuePair& pair = pairs_[index];
    const bool of_sends = awaited.completions == completions_of_sends(pair.number);
    newest = (of_sends ? pair.sent : pair.came).written() - 1;
  }
  const std::uint64_t beyond = (newest - awaited.value) & awaited.mask;
  return beyond <= awaited.mask / 2 ? Result::done : Result::waits;
}

/// Uses the peer's oldest receive: for a message, or for an immediate.
Card::Result Card::deliver(QueuePair& pair, const Entry& entry, std::span<const std::byte> message,
                           Syndrome& syndrome) {
  QueuePair& peer = *pair.peer;
  if (peer.receives.look() == 0) {
    note_fault(peer);
    if (!peer.in_error && !fail_without_receive_) return Result::waits;
    syndrome = Syndrome::receiver_not_ready;
    return Result::failed;
  }
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(peer.receives.next());
  completion.queue = peer.number;
  completion.immediate = entry.work.immediate;
  completion.byte_count = static_cast<std::uint32_t>(message.size());
  completion.kind = CqeKind::received_write_with_imm;
  const LocalBuffer buffer = peer.receives.read();
  peer.receives.retire(1);
  if (is_send(entry.work.opcode)) {
    const auto room = find(buffer.address, buffer.length, buffer.lkey);
    const bool fits = message.size() <= buffer.length;
    if (!message.empty() && (!fits || room.size() != buffer.length)) {
      completion.kind = CqeKind::receive_error;
      completion.syndrome = fits ? Syndrome::local_protection : Syndrome::local_length;
      syndrome = fits ? Syndrome::remote_operation : Syndrome::remote_invalid_request;
    } else {
      copy(message, room);
      completion.kind = entry.work.opcode == Opcode::send ? CqeKind::received_send
                                                          : CqeKind::received_send_with_imm;
    }
  }
  complete_came(peer, completion);
  if (!completion.is_error()) return Result::done;
  peer.in_error = true;
  return Result::failed;
}

Card::Syndrome Card::gather(const Entry& entry, std::vector<std::byte>& message) const {
  const auto* const inlined = static_cast<const std::byte*>(entry.work.inline_data);
  message.assign(inlined, inlined + entry.work.inline_length);
  for (const LocalBuffer& buffer : buffers_of(entry)) {
    const auto bytes = find(buffer.address, buffer.length, buffer.lkey);
    if (bytes.size() != buffer.length) return Syndrome::local_protection;
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  return Syndrome::none;
}

Card::Syndrome Card::scatter(const Entry& entry, std::span<const std::byte> message) {
  for (const LocalBuffer& buffer : buffers_of(entry)) {
    const auto bytes = find(buffer.address, buffer.length, buffer.lkey);
    if (bytes.size() != buffer.length) return Syndrome::local_protection;
    const std::size_t size = std::min(bytes.size(), message.size());
    copy(message.first(size), bytes);
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

void Card::note_fault(QueuePair& pair) {
  if (!pair.entries.has_fault() && !pair.receives.has_fault()) return;
  pair.in_error = true;
  if (!fault_.empty()) return;
  fault_ = "queue " + std::to_string(pair.number) + ": " +
           (pair.entries.has_fault() ? pair.entries.fault() : pair.receives.fault());
}

}  // namespace offload::rdma::model
