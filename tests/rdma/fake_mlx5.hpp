#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdint>

#include "rdma/queues/queue_memory.hpp"
#include "tests/rdma/fake_verbs.hpp"

/// libmlx5 without a card: the test program's own definitions of its functions. As libmlx5 does,
/// they lay queues out in memory that they ask the parent domain for, in its sizes and alignments.
namespace offload::rdma::test {

struct FakeMlx5 {
  bool drives = false;             ///< until reset_fake_mlx5()
  bool asks_domain = true;         ///< else its queues lie in its own memory
  std::uint32_t divisor = 1;       ///< its rings are smaller by this factor
  bool has_thread_domain = false;  ///< the last parent domain
  bool combines_writes = true;     ///< the pages of its registers
  mlx5dv_qp_init_attr pair{};      ///< the requested attributes
  /// The card's registers, one for each queue pair.
  alignas(64) std::uint64_t registers[4]{};
  std::uint32_t made = 0;  ///< queue pairs
};

FakeMlx5& fake_mlx5();
/// Returns whether libmlx5 made the queue pair.
bool is_cards(const FakeQueuePair& queue);
/// Must be called before a queue pair ends whose address another one may get.
void forget(const FakeQueuePair& queue);
/// Returns the memory of a queue pair that libmlx5 made, with the card's register.
QueuePairMemory memory_at_card(const FakeQueuePair& queue);
/// Call this after reset_fake(): devices that are opened are then mlx5 cards.
void reset_fake_mlx5();

}  // namespace offload::rdma::test
