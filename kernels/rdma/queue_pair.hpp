#pragma once

#include <cstdint>

#include "kernels/channel_packets.hpp"
#include "kernels/memory_order.hpp"
#include "kernels/platform.hpp"
#include "kernels/rdma/cqe.hpp"
#include "kernels/rdma/wqe.hpp"

/// Queues that a thread of a kernel, or of a CPU, posts to and polls without calling a library. The
/// handles are plain data, made on the host; rings and records are memory that both the thread and
/// the card can reach. Each queue has one owner, which keeps the state beside the handle. Positions
/// have 64 bits and never wrap; the parts of them that the card sees do.
namespace offload::kernels::rdma {

/// Stores `value` after all earlier writes of the caller: with release, to the whole system. Pairs
/// with the card's read of the record, or with the acquire of a CPU thread that emulates the card.
OFFLOAD_HOST_DEVICE inline void store_record(std::uint32_t* record, std::uint32_t value) {
  value = big_endian(value);
  store_release_sys(record, value);
}

/// Rings a doorbell: the card may read the record from now on, so the record must be stored first.
/// The store is one access of 8 bytes. Pairs as store_record().
OFFLOAD_HOST_DEVICE inline void ring_doorbell(std::uint64_t* doorbell, const Segment& control) {
  std::uint64_t value = 0;
  std::memcpy(&value, &control, sizeof value);
  // A release, which orders the record too: it is this thread's, or was synchronised with it.
  store_release_sys(doorbell, value);
}

/// Loads the last word of a completion with acquire: the rest of it, and the operation's data in
/// host memory, is read after it. Pairs with the card's last write, or with the release of its
/// emulation.
inline std::uint32_t load_owner(const Cqe& cqe) {
  return __atomic_load_n(&cqe.words[kCqeOwner], __ATOMIC_ACQUIRE);
}

/// A completion queue: 2^log2 entries, whose owner's words are kFreshOwner at first.
struct CompletionQueue {
  Cqe* entries;
  std::uint32_t log2;
  std::uint32_t* record;     ///< of its consumer
  std::uint32_t number = 0;  ///< the card's, for entries that wait for its completions
};

/// Returns whether completion `index` has come; the first one is 0. The entry is free again after
/// free_completions(). A GPU does not read the bytes and the immediate of a request that has
/// written, because that takes another round trip if the queue is in host memory.
OFFLOAD_HOST_DEVICE inline bool poll_completion(const CompletionQueue& queue, std::uint64_t index,
                                                Completion& completion) {
  const Cqe& cqe = queue.entries[index & ((std::uint64_t{1} << queue.log2) - 1)];
#if defined(__CUDA_ARCH__)
  // One access reads the owner's word and the words beside it that it makes valid: a card writes an
  // entry at once, and an emulation writes that word last. Relaxed, because most polls find
  // nothing; once the completion is there, the access becomes an acquire, without a round trip.
  // Pairs as load_owner().
  constexpr std::uint32_t kFirst = 12;
  const auto* const at = reinterpret_cast<const Packet*>(&cqe.words[kFirst]);
  const Packet last = load_packet(at);
  if (!is_there(last.flag, index, queue.log2)) return false;
  acquire_plain_payload(at);
  completion =
      read_last_words(last.data[kCqeSyndrome - kFirst], last.data[kCqeQueue - kFirst], last.flag);
  const bool has_bytes = completion.kind != CqeKind::request ||
                         completion.opcode == Opcode::rdma_read || is_atomic(completion.opcode);
  if (has_bytes && !completion.is_error()) completion = read_cqe(cqe);
#else
  if (!is_there(load_owner(cqe), index, queue.log2)) return false;
  completion = read_cqe(cqe);
#endif
  return true;
}

/// Tells the card that the completions before `end` were read.
OFFLOAD_HOST_DEVICE inline void free_completions(const CompletionQueue& queue, std::uint64_t end) {
  store_record(queue.record, static_cast<std::uint32_t>(end & 0xff'ffffU));
}

/// Returns the work of an entry that holds back what is posted behind it until completion `index`
/// of another queue is there; the first is 0, and errors count. `index` is less than 2^23 behind or
/// ahead of the newest completion.
OFFLOAD_HOST_DEVICE inline SendWork wait_for_completion(const CompletionQueue& queue,
                                                        std::uint64_t index) {
  SendWork work;
  work.opcode = Opcode::wait;
  work.awaited.value = index;
  work.awaited.completions = queue.number;
  return work;
}

/// Returns the work of an entry that holds back what is posted behind it until the card's clock has
/// reached `time`. Clock and unit are those of Completion::time.
OFFLOAD_HOST_DEVICE inline SendWork wait_for_time(std::uint64_t time) {
  SendWork work;
  work.opcode = Opcode::wait;
  work.awaited.value = time;
  work.awaited.mask = ~std::uint64_t{0};
  work.awaited.is_time = true;
  return work;
}

/// A send queue and the queue of its completions, which has at least one entry for each of its
/// blocks, and so never overflows.
struct SendQueue {
  SendRing ring;
  std::uint32_t number;   ///< of the queue pair
  std::uint32_t* record;  ///< of its producer
  std::uint64_t* doorbell;
  CompletionQueue completions;
  /// If false, the card takes the end of the published entries from the doorbell itself, as
  /// ConnectX-8 can. Such a queue is rung with doorbell_of().
  bool has_record = true;
};

/// Returns `pointer`, in memory that the caller sees at `from`, for a user that sees it at `to`.
template <class T>
T* as_seen_at(T* pointer, const void* from, void* to) {
  const auto offset =
      reinterpret_cast<std::uint8_t*>(pointer) - static_cast<const std::uint8_t*>(from);
  return reinterpret_cast<T*>(static_cast<std::uint8_t*>(to) + offset);
}

/// Returns a queue's handle for a user that sees its memory elsewhere, such as a GPU to which host
/// memory is mapped. `from` and `to`: the same byte of it.
inline CompletionQueue as_seen_at(CompletionQueue queue, const void* from, void* to) {
  queue.entries = as_seen_at(queue.entries, from, to);
  queue.record = as_seen_at(queue.record, from, to);
  return queue;
}
inline SendQueue as_seen_at(SendQueue queue, const void* from, void* to) {
  queue.ring.segments = as_seen_at(queue.ring.segments, from, to);
  queue.record = as_seen_at(queue.record, from, to);
  queue.doorbell = as_seen_at(queue.doorbell, from, to);
  queue.completions = as_seen_at(queue.completions, from, to);
  return queue;
}

/// Returns the value of a doorbell for entries up to `end`. A card with a record reads only the
/// queue's number from it, so this is right for both.
OFFLOAD_HOST_DEVICE inline Segment doorbell_of(const SendQueue& queue, std::uint64_t end) {
  const auto index = static_cast<std::uint32_t>(end & 0xffffU);
  return {{big_endian(index << 8), big_endian(queue.number << 8), 0, 0}};
}

/// Hands all entries up to `end` to the card: it stores the record, which contains the end, and
/// then rings the doorbell. Between the two it tells the card that the completions before `polled`
/// were read, so that there is room for those of the entries that the card sees. One thread of a
/// queue at a time, with numbers that never decrease.
///
/// Each store pairs with the card's read of it, or with the acquire of a CPU thread that emulates
/// the card.
OFFLOAD_HOST_DEVICE inline void ring_up_to(const SendQueue& queue, std::uint64_t end,
                                           std::uint64_t polled) {
  const Segment doorbell = doorbell_of(queue, end);
  const auto record = static_cast<std::uint32_t>(end & 0xffffU);
#if defined(__CUDA_ARCH__)
  // Two fences for three stores: earlier reads and writes come before the records, and the records
  // before the doorbell.
  fence_acq_rel_sys();
  if (queue.has_record) store_relaxed_sys(queue.record, big_endian(record));
  store_relaxed_sys(queue.completions.record,
                    big_endian(static_cast<std::uint32_t>(polled & 0xff'ffffU)));
#else
  if (queue.has_record) store_record(queue.record, record);
  free_completions(queue.completions, polled);
#endif
  ring_doorbell(queue.doorbell, doorbell);
}

/// The result of a post.
enum class Posted : std::uint32_t {
  done,
  full,     ///< no room until a completion is polled
  invalid,  ///< longer than an entry may be
};

/// The owner's positions in a send queue, in blocks and in completions.
struct SendState {
  std::uint64_t posted = 0;
  std::uint64_t published = 0;
  std::uint64_t completed = 0;  ///< up to here blocks are free
  std::uint64_t polled = 0;     ///< completions
  std::uint64_t last = 0;       ///< the block of the newest entry
  Segment newest{};             ///< its control segment: to read it back could go over PCIe
};

/// Writes an entry, which the card does not see before publish(). An operation that is not signaled
/// is completed by the next one that is, so the last one before publish() should be signaled.
OFFLOAD_HOST_DEVICE inline Posted post_send(const SendQueue& queue, SendState& state,
                                            const SendWork& work) {
  const std::uint32_t segments = segments_of(work);
  if (segments > kMostSegments) return Posted::invalid;
  const std::uint32_t blocks = blocks_of(segments);
  if (blocks > queue.ring.blocks) return Posted::invalid;
  if (state.posted + blocks - state.completed > queue.ring.blocks) return Posted::full;
  state.newest = write_entry(queue.ring, state.posted, queue.number, segments, work);
  state.last = state.posted;
  state.posted += blocks;
  return Posted::done;
}

/// Hands all posted entries to the card: it stores the record, which contains their end, and then
/// rings the doorbell with the beginning of the newest entry.
OFFLOAD_HOST_DEVICE inline void publish(const SendQueue& queue, SendState& state) {
  if (state.published == state.posted) return;
  state.published = state.posted;
  store_record(queue.record, static_cast<std::uint32_t>(state.posted & 0xffffU));
  ring_doorbell(queue.doorbell, state.newest);
}

/// Takes the next completion, which also completes all earlier entries; false if there is none yet.
/// If the entry is not the newest, its first block is free then, and the rest with the next
/// completion, because only the ring has its length. A counter of no entry in flight becomes an
/// error of kind `request_error`, syndrome `bad_response`.
OFFLOAD_HOST_DEVICE inline bool poll_send(const SendQueue& queue, SendState& state,
                                          Completion& completion) {
  if (!poll_completion(queue.completions, state.polled, completion)) return false;
  ++state.polled;
  // The counter has the lower 16 bits of the entry's position, which is one of those under way.
  const auto ahead = static_cast<std::uint16_t>(completion.counter - state.completed);
  const std::uint64_t entry = state.completed + ahead;
  if (entry < state.published) {
    state.completed = entry == state.last ? state.posted : entry + 1;
  } else {
    completion.kind = CqeKind::request_error;
    completion.syndrome = Syndrome::bad_response;
  }
  free_completions(queue.completions, state.polled);
  return true;
}

/// A receive queue with one buffer in each entry: a power of two of segments.
struct ReceiveQueue {
  Segment* ring;
  std::uint32_t entries;
  std::uint32_t* record;  ///< of its producer
  CompletionQueue completions;
};

struct ReceiveState {
  std::uint64_t posted = 0;
  std::uint64_t polled = 0;  ///< completions, each of which is the oldest receive's
};

/// Posts a receive, which the card does not see before publish(). Posted::full: all entries are in
/// use.
OFFLOAD_HOST_DEVICE inline Posted post_receive(const ReceiveQueue& queue, ReceiveState& state,
                                               const LocalBuffer& buffer) {
  if (state.posted - state.polled == queue.entries) return Posted::full;
  queue.ring[state.posted++ & (queue.entries - 1)] = receive_segment(buffer);
  return Posted::done;
}

/// Hands all posted receives to the card. A receive queue has no doorbell: the card reads the
/// record when a message comes.
OFFLOAD_HOST_DEVICE inline void publish(const ReceiveQueue& queue, const ReceiveState& state) {
  store_record(queue.record, static_cast<std::uint32_t>(state.posted & 0xffffU));
}

/// Takes the completion of the oldest receive; returns false if there is none yet.
OFFLOAD_HOST_DEVICE inline bool poll_receive(const ReceiveQueue& queue, ReceiveState& state,
                                             Completion& completion) {
  if (!poll_completion(queue.completions, state.polled, completion)) return false;
  free_completions(queue.completions, ++state.polled);
  return true;
}

}  // namespace offload::kernels::rdma
