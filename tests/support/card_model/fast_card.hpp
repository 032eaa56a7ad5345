#pragma once

#include <cstdint>
#include <deque>

#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma::model {

/// A card in memory for benchmarks: as fast as a thread can be, among queues of its own. Of each
/// entry it checks index, queue number and length. It carries out no-ops, writes, fetch-and-adds
/// and sends without an immediate, each with inline data or buffers; anything else is a fault.
///
/// What Card does and this does not: keys and bounds are not looked at, so the owner can have
/// it write anywhere; nor are flags but kSignaled, reserved fields and what the record says beyond
/// the ring. A fault is counted, and stops its queue without a completion. Allocates nothing.
class FastCard {
 public:
  /// `memory` has the number that its entries have; it outlives the card. Returns the queue pair's
  /// index.
  std::size_t add(const QueuePairMemory& memory);
  /// Each gets what the other sends; indices of add().
  void connect(std::size_t one, std::size_t other);

  /// Looks at each doorbell once, and carries out what it finds. Returns whether there was work.
  bool progress() noexcept;

  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }
  [[nodiscard]] std::uint64_t faults() const noexcept { return faults_; }

 private:
  struct QueuePair {
    QueuePairMemory memory;
    QueuePair* peer = nullptr;
    std::uint64_t doorbell = 0;  ///< as last seen
    std::uint64_t end = 0;
    std::uint64_t next = 0;
    std::uint64_t sent = 0;      ///< completions of the send queue
    std::uint64_t received = 0;  ///< receives used up
    bool broken = false;
  };

  bool serve(QueuePair& pair) noexcept;
  bool carry_out(QueuePair& pair, std::uint32_t opcode, std::uint32_t segments) noexcept;
  static bool deliver(QueuePair& peer, const kernels::rdma::LocalBuffer& from) noexcept;

  std::deque<QueuePair> pairs_;  // they refer to each other
  std::uint64_t entries_ = 0;
  std::uint64_t faults_ = 0;
};

}  // namespace offload::rdma::model
