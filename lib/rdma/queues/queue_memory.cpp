#include "rdma/queues/queue_memory.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "core/error.hpp"

namespace offload::rdma {
namespace {

using kernels::rdma::Cqe;
using kernels::rdma::kBlockBytes;
using kernels::rdma::kCqeOwner;
using kernels::rdma::Segment;

/// For the send queue's producer, the consumer of its completions, the doorbell, and the same two
/// of the receive queue.
constexpr std::size_t kLines = 5;

[[noreturn]] void refuse(const std::string& what) {
  throw core::Error(core::ErrorCode::invalid_value, what);
}

void check_count(std::uint32_t entries) {
  if (!std::has_single_bit(entries) || entries > kMostEntries) {
    refuse("a queue of " + std::to_string(entries) +
           " entries; allowed is a power of two of at most " + std::to_string(kMostEntries));
  }
}

void check_places(std::uint32_t entries, const kernels::rdma::CompletionQueue& completions) {
  check_count(entries);
  constexpr std::uint32_t kMostLog2 = 23;  // as the consumer's record has 24 bits
  if (completions.log2 > kMostLog2 || entries > 1U << completions.log2) {
    refuse("a queue of " + std::to_string(entries) + " entries with 2^" +
           std::to_string(completions.log2) + " places for completions");
  }
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kQueueAlignment - 1) / kQueueAlignment * kQueueAlignment;
}

/// Takes one part of the memory after the other.
class Parts {
 public:
  explicit Parts(std::byte* next) : next_(next) {}

  template <class T>
  T* take(std::size_t count) {
    auto* const part = reinterpret_cast<T*>(next_);
    next_ += aligned(count * sizeof(T));
    return part;
  }
  kernels::rdma::CompletionQueue take_completions(std::uint32_t entries) {
    kernels::rdma::CompletionQueue queue{take<Cqe>(entries),
                                         static_cast<std::uint32_t>(std::countr_zero(entries)),
                                         take<std::uint32_t>(1)};
    for (std::uint32_t i = 0; i < entries; ++i) {
      queue.entries[i].words[kCqeOwner] = kernels::rdma::big_endian(kernels::rdma::kFreshOwner);
    }
    return queue;
  }

 private:
  std::byte* next_;
};

}  // namespace

std::size_t queue_memory_bytes(const QueueSizes& sizes) {
  check_count(sizes.send_blocks);
  check_count(sizes.receives);
  return std::size_t{sizes.send_blocks} * (kBlockBytes + sizeof(Cqe)) +
         aligned(sizes.receives * sizeof(Segment)) + sizes.receives * sizeof(Cqe) +
         kLines * kQueueAlignment;
}

QueuePairMemory lay_out_queues(std::span<std::byte> memory, const QueueSizes& sizes,
                               std::uint32_t number) {
  const std::size_t bytes = queue_memory_bytes(sizes);
  if (number >> 24 != 0) refuse("the number of a queue pair has more than 24 bits");
  if (memory.size() < bytes) {
    refuse("queues of " + std::to_string(bytes) + " bytes in " + std::to_string(memory.size()));
  }
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % kQueueAlignment != 0) {
    refuse("the memory of queues must begin at a multiple of 64 bytes");
  }
  std::memset(memory.data(), 0, bytes);
  Parts parts(memory.data());
  QueuePairMemory queues{};
  queues.send.ring = {parts.take<Segment>(sizes.send_blocks * kernels::rdma::kSegmentsPerBlock),
                      sizes.send_blocks};
  queues.send.number = number;
  queues.send.completions = parts.take_completions(sizes.send_blocks);
  queues.send.record = parts.take<std::uint32_t>(1);
  queues.send.doorbell = parts.take<std::uint64_t>(1);
  queues.receive.ring = parts.take<Segment>(sizes.receives);
  queues.receive.entries = sizes.receives;
  queues.receive.completions = parts.take_completions(sizes.receives);
  queues.receive.record = parts.take<std::uint32_t>(1);
  return queues;
}

QueuePairMemory as_seen_at(const QueuePairMemory& queues, const void* from, void* to) {
  using kernels::rdma::as_seen_at;
  QueuePairMemory moved{as_seen_at(queues.send, from, to), queues.receive};
  moved.receive.ring = as_seen_at(moved.receive.ring, from, to);
  moved.receive.record = as_seen_at(moved.receive.record, from, to);
  moved.receive.completions = as_seen_at(moved.receive.completions, from, to);
  return moved;
}

void check_sizes(const QueuePairMemory& queues) {
  check_places(queues.send.ring.blocks, queues.send.completions);
  check_places(queues.receive.entries, queues.receive.completions);
}

}  // namespace offload::rdma
