#pragma once

#include <cstdint>
#include <deque>

#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma::model {

/// A card in memory for benchmarks: as fast as a thread can be, between its own queues only. It
/// checks index, queue number and length of each entry. It carries out no-ops, writes,
/// fetch-and-adds and sends without an immediate, each with inline data or buffers; anything else
/// is a fault.
///
/// Unlike Card it does not check keys and bounds, so the owner can have it write anywhere; nor does
/// it check flags but kSignaled, reserved fields and a record beyond the ring. It counts a fault
/// and stops its queue without a completion. Allocates nothing.
class FastCard {
 public:
  /// `memory` has the number that its entries have; it outlives the card. Returns the queue pair's
  /// index.
  std::size_t add(const QueuePairMemory& memory);
  /// Connects two queue pairs, given by their indices of add(): each gets the other's messages.
  void connect(std::size_t one, std::size_t other);

  /// Checks each doorbell once, and carries out new entries. Returns whether there was work.
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
