#include "softcard/card/card.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
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

/// Returns how long a receiver that is not ready asks to wait, by the code that InfiniBand's
/// specification gives it (table 45).
Clock::duration rnr_time(std::uint8_t code) {
  constexpr std::uint32_t kTens[] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                     16,    24,   32,   48,    64,    96,    128,   192,
                                     256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                     4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10) * kTens[code % 32];
}

std::span<const LocalBuffer> buffers_of(const Entry& entry) {
  return {entry.buffers, entry.work.buffer_count};
}

}  // namespace

std::uint32_t Card::register_memory(std::span<std::byte> bytes, RemoteRights rights) {
  const std::uint32_t key = kFirstKey + kKeyStep * keys_++;
  regions_.add(key, {reinterpret_cast<std::uint64_t>(bytes.data()), bytes, rights});
  return key;
}

std::uint32_t Card::add(const QueuePairMemory& memory) {
  return add(memory, EntryFormat::rdma);
}

std::uint32_t Card::add_raw(const QueuePairMemory& memory, std::uint32_t least_inline) {
  const std::uint32_t number = add(memory, EntryFormat::raw_packet);
  pairs_.at(number).least_inline = least_inline;
  return number;
}

std::uint32_t Card::add(const QueuePairMemory& memory, EntryFormat format) {
  check_sizes(memory);
  const auto number = kFirstNumber + static_cast<std::uint32_t>(pairs_.size());
  Completions& sent =
      add_completions(memory.send.completions, {.number = completions_of_sends(number)});
  Completions& came =
      add_completions(memory.receive.completions, {.number = completions_of_receives(number)});
  const ReceiveLayout receives{reinterpret_cast<const std::byte*>(memory.receive.ring),
                               memory.receive.entries, 4, false, memory.receive.record};
  SendQueue sends = memory.send;
  sends.number = number;
  auto own = std::make_unique<Receives>(receives);
  Receives* const all = own.get();
  pairs_.emplace(number,
                 QueuePair{number, nullptr, sends, format, EntryReader(sends, format, reading_),
                           std::move(own), receives, all, 0, &sent, &came});
  return number;
}

void Card::connect(std::uint32_t one, std::uint32_t other) {
  pairs_.at(one).peer = other;
  pairs_.at(other).peer = one;
}

bool Card::progress() {
  if (rude_) return progress_rudely();
  bool worked = false;
  for (auto& [number, pair] : pairs_) {
    if (!pair.is_owned) worked = pair.entries.look() || worked;
    worked = place_one(pair) || worked;
    while (serve(pair)) worked = true;
    worked = flush_receives(pair) || worked;
    note_fault(pair);
  }
  return write_late() || worked;
}

/// Returns whether a write came into memory. After the last, reports the operations that waited.
bool Card::place_one(QueuePair& pair) {
  if (pair.unplaced.empty()) return false;
  std::swap(pair.unplaced[(*unordered_)() % pair.unplaced.size()], pair.unplaced.back());
  copy(pair.unplaced.back().bytes, pair.unplaced.back().to);
  pair.unplaced.pop_back();
  if (!pair.unplaced.empty()) return true;
  for (; !pair.late_sent.empty(); pair.late_sent.pop_front()) {
    complete(pair, *pair.sent, pair.late_sent.front(), false);
  }
  return true;
}

bool Card::progress_rudely() {
  auto& random = *rude_;
  bool worked = false;
  std::vector<QueuePair*> all;
  all.reserve(pairs_.size());
  for (auto& [number, pair] : pairs_) all.push_back(&pair);
  const std::size_t first = random() % std::max<std::size_t>(all.size(), 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    QueuePair& pair = *all[(first + i) % all.size()];
    if (!pair.is_owned && random() % 4 != 0) {
      worked = pair.entries.look() || worked;
    }
    for (auto left = random() % 4; left != 0 && serve(pair); --left) worked = true;
    worked = worked || pair.entries.has_entry();
    worked = flush_receives(pair) || worked;
    note_fault(pair);
  }
  return write_late() || worked;
}

/// Returns whether there were completions to be written late.
bool Card::write_late() {
  if (!rude_ && !late_) return false;
  auto& random = rude_ ? *rude_ : *late_;
  const unsigned seldom = rude_ ? 2 : 8;
  bool worked = false;
  for (auto& [number, queue] : completions_) {
    worked = worked || !queue.late.empty();
    while (!queue.late.empty() && random() % seldom == 0) write_oldest_late(queue);
  }
  return worked;
}

void Card::write_oldest_late(Completions& to) {
  const Completions::Late oldest = to.late.front();
  to.late.pop_front();
  write(pairs_.at(oldest.pair), to, oldest.completion, oldest.solicited);
}

void Card::complete_sent(QueuePair& pair, const Completion& completion) {
  if (!pair.unplaced.empty()) {
    pair.late_sent.push_back(completion);
  } else {
    complete(pair, *pair.sent, completion, false);
  }
}

void Card::complete(QueuePair& pair, Completions& to, const Completion& completion,
                    bool solicited) {
  if (rude_ || late_) {
    to.late.push_back({pair.number, completion, solicited});
  } else {
    write(pair, to, completion, solicited);
  }
}

/// A queue pair whose completion has no room fails, and so does the queue of its completions.
void Card::write(QueuePair& pair, Completions& to, const Completion& completion, bool solicited) {
  const bool was_in_error = to.in_error();
  fetch(to.record());
  if (to.write(completion, solicited)) return store(to.newest());
  if (!was_in_error && events_ != nullptr) events_->completions_in_error(to.number());
  enter_error(pair, PairEvent::fatal);
}

/// A card that is not rude stores a word at once, and the last byte of anything else after the
/// rest: a thread that polls memory for them relies on that. The release pairs with the acquire of
/// the polling thread.
void Card::copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.empty()) return;
  copy_to_copy(from, to);
  store(to.first(from.size()));
}

void Card::copy_to_copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (rude_) return copy_rudely(from, to);
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
  if (pair.state != State::sending && pair.state != State::error) return false;
  if (pair.not_before != Clock::time_point{} && Clock::now() < pair.not_before) return false;
  Entry entry;
  std::array<std::byte, kMostInline> inline_bytes;
  if (!pair.entries.read(entry, inline_bytes.data())) return false;
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(entry.position);
  completion.queue = pair.number;
  completion.opcode = entry.work.opcode;
  Syndrome syndrome = Syndrome::flushed;
  Result result = Result::failed;
  if (pair.state != State::error) {
    result = carry_out(pair, entry, syndrome, completion.byte_count);
  }
  if (result == Result::waits) return false;
  pair.is_placing = false;
  pair.rnr_tries = 0;
  pair.not_before = {};
  pair.away_since.reset();
  pair.exchange.reset();
  pair.entries.pass(entry);
  pair.entries.retire(entry.end());
  if (result == Result::failed) {
    completion.kind = CqeKind::request_error;
    completion.syndrome = syndrome;
  }
  if (result == Result::failed || (entry.work.flags & kSignaled) != 0) {
    complete_sent(pair, completion);
  }
  if (result == Result::failed) enter_error(pair, PairEvent::none);
  return true;
}

Card::Result Card::carry_out(QueuePair& pair, const Entry& entry, Syndrome& syndrome,
                             std::uint32_t& bytes) {
  const SendWork& work = entry.work;
  if (work.opcode == Opcode::nop) return Result::done;
  if (work.opcode == kDump) {
    syndrome = gather(pair, entry, message_);
    return syndrome == Syndrome::none ? Result::done : Result::failed;
  }
  if (work.opcode == Opcode::wait) return await(pair, work.awaited, syndrome);
  if (pair.format == EntryFormat::raw_packet) return send_frame(pair, entry, syndrome);
  return ask_peer(pair, entry, syndrome, bytes);
}

/// Has the peer carry out an entry.
Card::Result Card::ask_peer(QueuePair& pair, const Entry& entry, Syndrome& syndrome,
                            std::uint32_t& bytes) {
  const SendWork& work = entry.work;
  const auto failed = [&](Syndrome why) {
    syndrome = why;
    return Result::failed;
  };
  const bool writes =
      work.opcode == Opcode::rdma_write || work.opcode == Opcode::rdma_write_with_imm;
  if (!writes && !pair.unplaced.empty()) return Result::waits;
  const bool reads = work.opcode == Opcode::rdma_read || is_atomic(work.opcode);
  if (reads && pair.is_unreliable) return failed(Syndrome::local_queue_operation);
  message_.clear();
  if (!reads && !pair.exchange) {
    if (const auto why = gather(pair, entry, message_); why != Syndrome::none) return failed(why);
  }
  Request request;
  request.to = pair.peer;
  request.from = pair.number;
  request.psn = pair.next_psn;
  request.opcode = work.opcode;
  request.solicited = (work.flags & kernels::rdma::kSolicited) != 0;
  request.immediate = work.immediate;
  request.remote = work.remote;
  request.compare_add = work.compare_add;
  request.swap = work.swap;
  request.total = length_of(entry, message_.size());
  request.length = request.total;
  request.bytes = message_;
  bytes = static_cast<std::uint32_t>(request.total);
  if (pair.remote) return ask_remote(pair, entry, request, syndrome);
  const auto found = pairs_.find(pair.peer);
  const Answer answer =
      found == pairs_.end() ? Answer::none : respond(found->second, &pair, request, message_);
  if (answer == Answer::not_yet) return Result::waits;
  if (pair.is_unreliable) return Result::done;  // the peer does not say that it was lost
  switch (answer) {
    case Answer::no_receive: return without_receive(pair, found->second.rnr_timer, syndrome);
    case Answer::none: return without_peer(pair, syndrome);
    case Answer::invalid_request: return failed(Syndrome::remote_invalid_request);
    case Answer::no_access: return failed(Syndrome::remote_access);
    case Answer::failed: return failed(Syndrome::remote_operation);
    default: break;
  }
  QueuePair& peer = found->second;
  pair.next_psn = (pair.next_psn + 1) & kPsnMask;
  if (request.psn == peer.expected_psn) {  // and no duplicate
    peer.expected_psn = (peer.expected_psn + 1) & kPsnMask;
    peer.arrival.last_result.clear();
    if (is_atomic(work.opcode)) peer.arrival.last_result = message_;
  }
  if (!reads) return Result::done;
  const Syndrome why = scatter(pair, buffers_of(entry), 0, message_);
  return why == Syndrome::none ? Result::done : failed(why);
}

/// Returns the bytes of an operation. `gathered`: those of a write or a send.
std::uint64_t Card::length_of(const Entry& entry, std::size_t gathered) {
  if (is_atomic(entry.work.opcode)) return sizeof(std::uint64_t);
  std::uint64_t length = gathered;
  if (entry.work.opcode == Opcode::rdma_read) {
    for (const LocalBuffer& buffer : buffers_of(entry)) length += buffer.length;
  }
  return length;
}

Card::Result Card::without_peer(QueuePair& pair, Syndrome& syndrome) {
  if (!pair.patience) return Result::waits;
  const auto now = Clock::now();
  if (!pair.away_since) pair.away_since = now;
  if (now - *pair.away_since < *pair.patience) return Result::waits;
  syndrome = Syndrome::transport_retries;
  return Result::failed;
}

Card::Result Card::without_receive(QueuePair& pair, std::uint8_t rnr_timer,
                                   Syndrome& syndrome) const {
  constexpr std::uint8_t kForEver = 7;
  const bool again = pair.rnr_retries == kForEver || pair.rnr_tries++ < pair.rnr_retries;
  if (fail_without_receive_ || !again) {
    syndrome = Syndrome::receiver_not_ready;
    return Result::failed;
  }
  // A peer on this card is asked again in each turn: that sends nothing.
  if (pair.rnr_retries != kForEver || pair.remote)
    pair.not_before = Clock::now() + rnr_time(rnr_timer);
  return Result::waits;
}

/// Checks whether the clock, or the other completion queue, has reached the awaited value.
Card::Result Card::await(const QueuePair& pair, const Awaited& awaited, Syndrome& syndrome) const {
  std::uint64_t newest = kernels::rdma::now_ns();
  if (!awaited.is_time) {
    const auto queue = completions_.find(awaited.completions);
    if (queue == completions_.end() || !pair.may_wait) {
      syndrome = Syndrome::local_queue_operation;
      return Result::failed;
    }
    newest = queue->second.written() - 1;
  }
  const std::uint64_t beyond = (newest - awaited.value) & awaited.mask;
  return beyond <= awaited.mask / 2 ? Result::done : Result::waits;
}

Card::Syndrome Card::gather(const QueuePair& pair, const Entry& entry,
                            std::vector<std::byte>& message) const {
  const auto* const inlined = static_cast<const std::byte*>(entry.work.inline_data);
  message.assign(inlined, inlined + entry.work.inline_length);
  for (const LocalBuffer& buffer : buffers_of(entry)) {
    const auto bytes =
        Regions::part(regions_.find(buffer.lkey, pair.domain), buffer.address, buffer.length);
    if (bytes.size() != buffer.length) return Syndrome::local_protection;
    fetch(bytes);
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  return Syndrome::none;
}

/// Copies to `buffers`, from byte `offset` of them on.
Card::Syndrome Card::scatter(QueuePair& pair, std::span<const LocalBuffer> buffers,
                             std::uint64_t offset, std::span<const std::byte> message) {
  for (const LocalBuffer& buffer : buffers) {
    const Region* const region = regions_.find(buffer.lkey, pair.domain);
    const auto bytes = Regions::part(region, buffer.address, buffer.length);
    if (bytes.size() != buffer.length || (!bytes.empty() && !region->can_be_written)) {
      return Syndrome::local_protection;
    }
    const auto room = bytes.subspan(std::min<std::uint64_t>(offset, bytes.size()));
    offset -= bytes.size() - room.size();
    const std::size_t size = std::min(room.size(), message.size());
    copy(message.first(size), room);
    message = message.subspan(size);
  }
  return message.empty() ? Syndrome::none : Syndrome::local_length;
}

void Card::enter_error(QueuePair& pair, PairEvent event) {
  if (pair.state == State::error) return;
  pair.state = State::error;
  pair.not_before = {};
  if (events_ == nullptr) return;
  events_->state_changed(pair.number, pair.state);
  if (event != PairEvent::none) events_->pair_event(pair.number, event);
  if (pair.shared != 0) events_->pair_event(pair.number, PairEvent::last_receive);
}

void Card::note_fault(QueuePair& pair) {
  const bool of_receives = pair.own != nullptr && pair.own->has_fault();
  if ((!pair.entries.has_fault() && !of_receives) || pair.has_written_fault) return;
  pair.has_written_fault = true;
  enter_error(pair, PairEvent::fatal);
  if (!fault_.empty()) return;
  fault_ = "queue " + std::to_string(pair.number) + ": " +
           (pair.entries.has_fault() ? pair.entries.fault()
                                     : "the record of receives is beyond the ring");
}

}  // namespace offload::rdma::model
