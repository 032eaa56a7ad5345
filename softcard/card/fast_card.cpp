#include "softcard/card/fast_card.hpp"

#include <cstring>

namespace offload::rdma::model {
namespace {

using kernels::rdma::big_endian;
using kernels::rdma::blocks_of;
using kernels::rdma::Completion;
using kernels::rdma::CompletionQueue;
using kernels::rdma::CqeKind;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Opcode;
using kernels::rdma::Segment;
using kernels::rdma::SendRing;

/// The bit that marks a segment of inline data: its bytes follow.
constexpr std::uint32_t kInlineBit = 0x8000'0000U;

std::uint64_t number_of(const Segment& segment, std::uint32_t first) {
  return std::uint64_t{big_endian(segment.words[first])} << 32 |
         big_endian(segment.words[first + 1]);
}

template <class T>
T* pointer_to(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT: the owner's address is what there is
}

/// Returns the counter in the lower bits; acquire, as for each record and doorbell.
std::uint16_t read_record(const std::uint32_t* record) {
  return static_cast<std::uint16_t>(big_endian(__atomic_load_n(record, __ATOMIC_ACQUIRE)));
}

/// Writes only the words that report a request's completion; the owner's last, with release. Pairs
/// with load_owner().
void write_request(const CompletionQueue& queue, std::uint64_t index, std::uint32_t number,
                   std::uint64_t position) {
  auto& cqe = queue.entries[index & ((std::uint64_t{1} << queue.log2) - 1)];
  const auto counter = static_cast<std::uint32_t>(position & 0xffffU);
  cqe.words[kernels::rdma::kCqeQueue] = big_endian(number);
  __atomic_store_n(&cqe.words[kernels::rdma::kCqeOwner],
                   big_endian(counter << 16 | kernels::rdma::owner_of(index, queue.log2)),
                   __ATOMIC_RELEASE);
}

/// Copies an entry's inline data or buffers, from segment `i` on, to `to`.
void gather_to(const SendRing& ring, std::uint64_t position, std::uint32_t i,
               std::uint32_t segments, std::byte* to) {
  for (; i < segments; ++i) {
    const Segment& segment = ring.at(position, i);
    std::uint32_t length = big_endian(segment.words[0]);
    if ((length & kInlineBit) == 0) {
      std::memcpy(to, pointer_to<const std::byte>(number_of(segment, 2)), length);
      to += length;
      continue;
    }
    length &= ~kInlineBit;
    std::uint32_t skipped = sizeof(std::uint32_t);
    for (; length != 0 && i < segments; ++i, skipped = 0) {
      const auto room = static_cast<std::uint32_t>(sizeof segment) - skipped;
      const std::uint32_t size = length < room ? length : room;
      std::memcpy(to, reinterpret_cast<const std::byte*>(&ring.at(position, i)) + skipped, size);
      to += size;
      length -= size;
    }
    return;
  }
}

}  // namespace

std::size_t FastCard::add(const QueuePairMemory& memory) {
  check_sizes(memory);
  pairs_.emplace_back().memory = memory;
  return pairs_.size() - 1;
}

void FastCard::connect(std::size_t one, std::size_t other) {
  pairs_.at(one).peer = &pairs_.at(other);
  pairs_.at(other).peer = &pairs_.at(one);
}

bool FastCard::progress() noexcept {
  bool worked = false;
  for (QueuePair& pair : pairs_) worked = serve(pair) || worked;
  return worked;
}

bool FastCard::serve(QueuePair& pair) noexcept {
  const auto& send = pair.memory.send;
  const std::uint64_t doorbell = __atomic_load_n(send.doorbell, __ATOMIC_ACQUIRE);
  if (doorbell != pair.doorbell) {
    pair.doorbell = doorbell;
    pair.end += static_cast<std::uint16_t>(read_record(send.record) - pair.end);
  }
  if (pair.next == pair.end || pair.broken) return false;
  constexpr std::uint64_t kAhead = 8;
  while (pair.next != pair.end) {
    __builtin_prefetch(&send.ring.at(pair.next + kAhead, 0));
    const Segment& control = send.ring.at(pair.next, 0);
    const std::uint32_t what = big_endian(control.words[0]);
    const std::uint32_t whose = big_endian(control.words[1]);
    const std::uint32_t segments = whose & 0x3fU;
    const std::uint32_t index = what >> 8 & 0xffffU;
    if (index != (pair.next & 0xffffU) || whose >> 8 != send.number || segments == 0) {
      pair.broken = true;
      ++faults_;
      return true;
    }
    if (!carry_out(pair, what & 0xffU, segments)) return true;
    if ((big_endian(control.words[2]) & kernels::rdma::kSignaled) != 0) {
      write_request(send.completions, pair.sent++, send.number, pair.next);
    }
    pair.next += blocks_of(segments);
    ++entries_;
  }
  return true;
}

/// Returns false if the entry waits for a receive, or is a fault.
bool FastCard::carry_out(QueuePair& pair, std::uint32_t opcode, std::uint32_t segments) noexcept {
  const SendRing& ring = pair.memory.send.ring;
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::nop: return true;
    case Opcode::rdma_write:
      gather_to(ring, pair.next, 2, segments,
                pointer_to<std::byte>(number_of(ring.at(pair.next, 1), 0)));
      return true;
    case Opcode::fetch_add: {
      auto* const word = pointer_to<std::uint64_t>(number_of(ring.at(pair.next, 1), 0));
      // Sequentially consistent: the peer polls such words to see what was written before them.
      const std::uint64_t before =
          __atomic_fetch_add(word, number_of(ring.at(pair.next, 2), 0), __ATOMIC_SEQ_CST);
      std::memcpy(pointer_to<std::byte>(number_of(ring.at(pair.next, 3), 2)), &before,
                  sizeof before);
      return true;
    }
    case Opcode::send: {
      const Segment& segment = ring.at(pair.next, 1);
      if (pair.peer != nullptr && segments == 2 && (big_endian(segment.words[0]) >> 31) == 0) {
        return deliver(*pair.peer, {number_of(segment, 2), big_endian(segment.words[0]), 0});
      }
      break;
    }
    default: break;
  }
  pair.broken = true;
  ++faults_;
  return false;
}

/// Copies to the peer's oldest receive, which must be long enough. Returns false if there is none.
bool FastCard::deliver(QueuePair& peer, const LocalBuffer& from) noexcept {
  const auto& queue = peer.memory.receive;
  if (read_record(queue.record) == static_cast<std::uint16_t>(peer.received)) return false;
  const Segment& segment = queue.ring[peer.received & (queue.entries - 1)];
  std::memcpy(pointer_to<std::byte>(number_of(segment, 2)),
              pointer_to<const std::byte>(from.address), from.length);
  Completion completion{};
  completion.kind = CqeKind::received_send;
  completion.counter = static_cast<std::uint16_t>(peer.received);
  completion.queue = peer.memory.send.number;
  completion.byte_count = from.length;
  const CompletionQueue& to = queue.completions;
  const auto cqe = make_cqe(completion, peer.received, to.log2);
  auto& place = to.entries[peer.received & ((std::uint64_t{1} << to.log2) - 1)];
  std::memcpy(place.words, cqe.words, kernels::rdma::kCqeOwner * sizeof(std::uint32_t));
  __atomic_store_n(&place.words[kernels::rdma::kCqeOwner], cqe.words[kernels::rdma::kCqeOwner],
                   __ATOMIC_RELEASE);
  ++peer.received;
  return true;
}

}  // namespace offload::rdma::model
